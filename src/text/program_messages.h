/* Messages as template programs want them: what one takes makes another fail, or is left out by it. Which wants a
 * program has is known by what its text contains. */
#ifndef PD_TEXT_PROGRAM_MESSAGES_H
#define PD_TEXT_PROGRAM_MESSAGES_H

#include "text/messages.h"

#define PD_THOUGHT_BLOCK "block['thinking']"   /* in programs that write thoughts of past turns */

/* Again, it changes nothing. False: there is no memory. */
bool pd_program_suit_messages(struct pd_messages *m, const char *jinja);
/* The arguments of all calls become text, as json.dumps writes it. */
peridot_status pd_program_write_arguments(struct pd_messages *m);

#endif
