/* The marks of what a model thinks: the tokens that begin and end it. Where there is a third, the model's turn is
 * messages, each with a header from that to the first, of which the prompt may have the beginning: a thought follows
 * one that ends in PD_THOUGHT_HEADER; what follows others is for the user, or a function. */
#ifndef PD_TEXT_THOUGHTS_H
#define PD_TEXT_THOUGHTS_H

enum { PD_THOUGHT_BEGIN, PD_THOUGHT_END, PD_THOUGHT_START, PD_N_THOUGHT_MARKS };
#define PD_THOUGHT_HEADER " to=self"

#endif
