/* Reports as CSV (RFC 4180, with plain newlines): a line for each test. */
#include "words.h"

#include <inttypes.h>
#include <string.h>

/* A text that a spreadsheet would take as a formula begins with an apostrophe. */
static void csv_text(FILE *file, const char *text)
{
    fputc('"', file);
    if (*text && strchr("=+-@", *text)) fputc('\'', file);
    for (; *text; text++) {
        if (*text == '"') fputc('"', file);
        fputc(*text, file);
    }
    fputs("\",", file);
}

/* What identifies the machine. */
static void csv_machine(FILE *file, const struct report *r)
{
    const char *const texts[] = {r->commit, r->device.type, r->device.uuid, r->device.pci, r->machine.cpu,
                                 r->machine.os, r->machine.kernel, r->before.power_source, r->before.power_profile,
                                 r->left_out};
    const double numbers[] = {r->before.power_limit_w, r->before.temperature_c, r->after.temperature_c,
                              r->before.clock_hz, r->after.clock_hz, r->score.total};
    fprintf(file, "%" PRIu32 ",%" PRIu32 ",%" PRIu32 ",%" PRIu64 ",", r->device.vendor_id, r->device.device_id,
            r->device.driver_version, r->machine.memory);
    for (size_t i = 0; i < CMD_COUNT(texts); i++) csv_text(file, texts[i]);
    fprintf(file, "%.4f", report_spread(r));
    for (size_t i = 0; i < CMD_COUNT(numbers); i++) {
        if (numbers[i] > 0) fprintf(file, ",%.6g", numbers[i]);
        else fputs(",-", file);
    }
}

/* The gaps between a stream's tokens while a prompt was read. */
static void csv_beside(FILE *file, const struct report *r)
{
    if (r->beside.n_gaps)
        fprintf(file, ",%" PRIu32 ",%.6g,%" PRIu32 ",%" PRIu32 ",%.6g,%.6g,%.6g\n", r->beside.n_prompt,
                r->beside.prompt_s, r->beside.n_gaps, r->beside.n_slow, r->beside.median_s, r->beside.p95_s,
                r->beside.max_s);
    else fputs(",-,-,-,-,-,-,-\n", file);
}

static void csv_row(FILE *file, const struct report *r, const struct report_test *t)
{
    const char *const texts[] = {r->label, r->date, r->device.name, r->device.driver, r->device.driver_info,
                                 r->model.name, r->model.family, r->model.types};
    for (size_t i = 0; i < CMD_COUNT(texts); i++) csv_text(file, texts[i]);
    fprintf(file, "%d,%" PRIu64 ",%" PRIu64 ",%016" PRIx64 ",", r->model.random_weights, r->model.n_params,
            r->model.size, r->model.hash);
    fprintf(file, "%" PRIu32 ",%" PRIu32 ",", r->ctx, r->chunk);
    csv_text(file, r->kv);
    fprintf(file, "%.6g,%.6g,", r->rates.read, r->rates.copy);
    const double flops[] = {r->rates.fp32, r->rates.fp16, r->rates.matrix};
    for (size_t i = 0; i < CMD_COUNT(flops); i++) {
        if (flops[i] > 0) fprintf(file, "%.6g,", flops[i]);
        else fputs("-,", file);
    }
    fprintf(file, "%" PRIu32 ",%" PRIu64 ",%" PRIu64 ",%" PRIu64 ",", r->placement.n_far_layers, r->placement.far_size,
            r->placement.decode_read_size, r->placement.decode_far_size);
    fprintf(file, "%.4f,%.4f,%" PRIu64 ",%" PRIu64 ",%" PRIu32 ",", r->load_s, r->first_token_s, r->device_memory,
            r->host_memory, r->n_dispatches);
    csv_text(file, t->name);
    fprintf(file, "%s,%" PRIu32 ",%" PRIu32 ",%" PRIu32 ",%" PRIu32 ",", t->generation ? "generation" : "prompt",
            t->n_tokens, t->depth, t->n_sequences, t->n_repeats);
    fprintf(file, "%.6g,%.6g,%.6g,%.6g,%.6g,%.6g,", t->median, t->min, t->max, t->sd, t->bytes_per_s, t->flop_per_s);
    fprintf(file, "%.4f,%s,%.4f,%016" PRIx64 ",%d,%d,", t->bandwidth_part, t->arithmetic, t->arithmetic_part,
            t->checksum, t->finite, t->equal);
    fprintf(file, "%" PRIu32 ",%.6g,%.6g,", t->top_token, t->top_logit, t->rms);
    csv_machine(file, r);
    csv_beside(file, r);
}

void report_write_csv(FILE *file, const struct report *const *reports, size_t n)
{
    fputs("report,date,device,driver,driver_info,model,family,types,random_weights,n_params,size,hash,ctx,chunk,kv,"
          "read,copy,fp32,fp16,matrix,n_far_layers,far_size,decode_read_size,decode_far_size,load_s,first_token_s,"
          "device_memory,host_memory,dispatches_per_token,test,kind,n_tokens,depth,n_sequences,n_repeats,median,min,"
          "max,sd,bytes_per_s,flop_per_s,bandwidth_part,arithmetic,arithmetic_part,checksum,finite,repeats_equal,"
          "top_token,top_logit,rms,vendor_id,device_id,driver_version,machine_memory,commit,device_type,uuid,pci,cpu,"
          "os,kernel,power_source,power_profile,left_out,rates_spread,power_limit_w,temperature_before_c,"
          "temperature_after_c,clock_before_hz,clock_after_hz,score,beside_n_prompt,beside_prompt_s,"
          "beside_n_gaps,beside_n_slow,beside_median_s,beside_p95_s,beside_max_s\n", file);
    for (size_t i = 0; i < n; i++)
        for (size_t k = 0; k < reports[i]->n_tests; k++) csv_row(file, reports[i], &reports[i]->tests[k]);
}
