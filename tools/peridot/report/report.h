/* Reports of `peridot bench` for people: tables, pages with plots, some lines of a set's. A report comes as JSON,
 * whose keys README.md lists, and goes out in one of the formats below; who measured it, when and where makes no
 * difference. `peridot bench` hands over what it measured in the same way as a file that somebody saved years ago, and
 * peridot-report is these files with a main of their own. One thread at a time: texts are made in shared buffers. */
#ifndef PERIDOT_COMMAND_REPORT_REPORT_H
#define PERIDOT_COMMAND_REPORT_REPORT_H

#include "../base/base.h"

#include <stdio.h>

enum {
    REPORT_SCHEMA = 2,           /* of a report; 1 is read too */
    REPORT_SET_SCHEMA = 3,       /* of several reports with a score */
    /* What a file may hold; more is refused. */
    REPORT_TESTS = 640,          /* of a report */
    REPORT_REPEATS = 100,        /* of a test */
    REPORT_KERNELS = 64,         /* of a test */
    REPORT_RANKS = 256,
    REPORT_SET = 8,              /* reports of a set */
    /* Bytes of the texts that may be of any length elsewhere, with the 0 at their end. */
    REPORT_NOTE = 512,           /* note, left_out, session.tuning */
    REPORT_NAME = 256,           /* of a device, driver, model */
    REPORT_WORDS = 128           /* model.types, session.kernels, machine.cpu, .os, .kernel */
};

/* Reports in the order in which they were added, the first of which is what others are compared with. */
struct reports;

peridot_status reports_create(struct reports **out);
void reports_free(struct reports *list);
/* Adds the report, or the set of them, that a JSON text is. All of it is checked: it may come from anywhere. `path`
 * names it in sentences, and its last part without ".json" labels the reports; NULL: it is no file's, and has no
 * label. */
peridot_status reports_add(struct reports *list, const char *json, size_t size, const char *path);
peridot_status reports_add_file(struct reports *list, const char *path);
/* All *.json of a folder, in the order of their names; or that one file, where path is no folder. */
peridot_status reports_add_folder(struct reports *list, const char *path);
/* From now on files that are no reports are left out, and a sentence for each is kept. */
void reports_skip_bad(struct reports *list);
/* Those sentences, "" for none; as long as the list. */
const char *reports_left_out(const struct reports *list);

enum report_format {
    REPORT_MD, REPORT_CSV,
    REPORT_HTML,                 /* a page, of one report or of many */
    REPORT_LINES                 /* some, to paste, of the reports of one set */
};
/* There is at least one report. */
peridot_status reports_write(const struct reports *list, FILE *file, enum report_format format);
/* A board of them: index.html and a page for each, in a folder that is made where it is not there. */
peridot_status reports_write_site(const struct reports *list, const char *folder);

/* Of a --quick run: 100 times the geometric mean of its speeds relative to those of words.c's reference: of all six,
 * and of the two of each kind. */
enum { REPORT_PARTS = 6 };
struct report_score {
    double total, prompt, generation, batch;   /* 0: there is none */
    uint32_t n_parts;            /* speeds that were measured, of REPORT_PARTS */
    bool shortened;              /* some of fewer tokens than the reference's */
};
/* Of the set that the first report is in. */
struct report_score reports_score(const struct reports *list);

/* SHA-256 in hexadecimal, by README.md's rule, of the JSON text of an object, whether it has the key or not. */
enum { REPORT_CHECKSUM = 65 };
peridot_status report_checksum(char out[REPORT_CHECKSUM], const char *json, size_t size);
/* The same as the last key of a text that has none yet; *json is freed, and another one. */
peridot_status report_add_checksum(char **json, size_t *size);

/* Whether this is the name of a model that peridot make wrote. */
bool report_is_made(const char *name);

/* "p512: 194.9 ± 9.8 tokens/s, 45.6 GFLOP/s, 31 % of fp32": the JSON of one test as a line. */
peridot_status report_test_line(FILE *file, const char *json, size_t size);

#endif
