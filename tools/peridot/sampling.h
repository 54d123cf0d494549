/* How the next token is chosen, as options: what peridot_sampling has, for every command that writes text. */
#ifndef PERIDOT_COMMAND_SAMPLING_H
#define PERIDOT_COMMAND_SAMPLING_H

#include "command.h"

#include <stdio.h>

/* A member of such a command's arguments. */
struct cmd_sampling {
    peridot_sampling p;
    struct cmd_texts stop, bias;
    const char *schema;        /* a file; NULL: none */
    bool verbose;
};

#define CMD_SAMPLING_OPTIONS(type, member) \
    {.name = "temp", .metavar = "T", .kind = CMD_F32, .offset = offsetof(type, member.p.temperature), \
     .fallback = "0.8", .max = 100, \
     .help = "Temperature: 0 always takes the likeliest token; higher values give more varied text."}, \
    {.name = "top-k", .metavar = "K", .kind = CMD_U32, .offset = offsetof(type, member.p.top_k), .fallback = "40", \
     .help = "Draw among the K likeliest tokens; 0: among all."}, \
    {.name = "top-p", .metavar = "P", .kind = CMD_F32, .offset = offsetof(type, member.p.top_p), .max = 1, \
     .fallback = "0.95", .help = "Draw among the likeliest tokens that together have probability P; 1: among all."}, \
    {.name = "min-p", .metavar = "P", .kind = CMD_F32, .offset = offsetof(type, member.p.min_p), .max = 1, \
     .fallback = "0.05", .help = "Draw among tokens at least P times as likely as the likeliest; 0: among all."}, \
    {.name = "repeat-penalty", .metavar = "R", .kind = CMD_F32, .offset = offsetof(type, member.p.repeat_penalty), \
     .fallback = "1", .max = 100, .help = "Makes the last 64 tokens less likely to come again: positive logits are " \
     "divided by R, others multiplied; 1: off."}, \
    {.name = "presence-penalty", .metavar = "X", .kind = CMD_F32, .offset = offsetof(type, member.p.presence_penalty), \
     .fallback = "0", .min = -100, .max = 100, .help = "Subtracted from the logits of the last 64 tokens."}, \
    {.name = "frequency-penalty", .metavar = "X", .kind = CMD_F32, \
     .offset = offsetof(type, member.p.frequency_penalty), .fallback = "0", .min = -100, .max = 100, \
     .help = "Subtracted from a token's logit once for each time that it is among the last 64."}, \
    {.name = "logit-bias", .metavar = "ID=X", .kind = CMD_TEXTS, .offset = offsetof(type, member.bias), \
     .help = "Adds X to the logit of token ID; -inf bans it. May be repeated."}, \
    {.name = "stop", .metavar = "TEXT", .kind = CMD_TEXTS, .offset = offsetof(type, member.stop), \
     .help = "Ends the reply before this text. May be repeated: the first that occurs counts."}, \
    {.name = "seed", .metavar = "S", .kind = CMD_SEED, .offset = offsetof(type, member.p.seed), .fallback = "random", \
     .help = "The same seed, device and model give the same text. The statistics show the one used."}, \
    {.name = "verbose", .kind = CMD_FLAG, .offset = offsetof(type, member.verbose), \
     .help = "Show on standard error how tokens are chosen: every step of the chain, in its order."}

#define CMD_SCHEMA_OPTION(type, member) \
    {.name = "json-schema", .metavar = "FILE", .kind = CMD_TEXT, .offset = offsetof(type, member.schema), \
     .help = "The reply is JSON that this JSON Schema allows, whatever the model: other tokens are never drawn. A " \
             "reply that ends by its length is cut. Keywords that are not supported are named."}

/* The options with stop texts and biases put in their places; `bias` is where the latter go. Borrows from both. CMD_OK,
 * or CMD_USAGE after a sentence. */
int cmd_sampling_make(peridot_sampling *out, peridot_bias bias[CMD_TEXTS_MAX], const struct cmd_command *command,
                      const struct cmd_sampling *given);
/* The grammar of --json-schema for the model's vocabulary; NULL without the option. Failures name the file. */
peridot_status cmd_grammar_open(peridot_grammar **out, const struct cmd_sampling *given, const peridot_model *model);
/* "sampling: repeat penalty 1.1, top-k 40, ..." in the chain's order, without what is off. */
void cmd_sampling_print(FILE *file, const peridot_sampling *p);
/* A line on what a reply cost: "prompt: 4 tokens, 323.8 tokens/s; reply: 48 tokens, ...". */
void cmd_stats_print(FILE *file, const peridot_stats *s, const peridot_sampling *sampling);

#endif
