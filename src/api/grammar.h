/* Grammars that are not of JSON alone, and the spellings that all are made of. */
#ifndef PD_API_GRAMMAR_H
#define PD_API_GRAMMAR_H

#include "api/vocab.h"
#include "grammar/calls/calls.h"

/* The bytes of a vocabulary's pieces, made when they are asked for first. The vocabulary's. */
peridot_status pd_api_find_spellings(struct pd_spellings **out, const peridot_vocab *vocab);
/* Which control tokens of calls a vocabulary has: for pd_calls.marks. */
unsigned pd_api_call_marks(const peridot_vocab *vocab);
/* The grammar of replies that may call tools; calls->marks are those of the vocabulary. */
peridot_status pd_api_grammar_calls(peridot_grammar **out, const peridot_vocab *vocab, const struct pd_calls *calls);

#endif
