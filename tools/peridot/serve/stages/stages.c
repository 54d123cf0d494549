/* The stages of a job, and what follows what. A request for text goes RECEIVED, READING, ENCODING, QUEUED, AT_WORK,
 * DONE: connection, reader, engine, connection. There is more where its model is not open, its messages have pictures,
 * or its reply must keep to a schema. */
#include "stages.h"
#include "stages_.h"
#include "../pictures/pictures.h"

#define MAY(stage) (1u << SERVE_##stage)
#define ENDS MAY(DONE)         /* an error, or an answer, may come of anything */

const struct serve_stage_row serve_stages[SERVE_N_STAGES] = {
    [SERVE_RECEIVED] = {SERVE_CONNECTION, NULL, NULL, MAY(READING) | MAY(CALLING) | ENDS},
    [SERVE_READING] = {SERVE_READER, serve_reader_queue, serve_reader_read,
                       MAY(LOADING) | MAY(PICTURES) | MAY(ENCODING) | ENDS},
    [SERVE_LOADING] = {SERVE_ENGINE, serve_engine_unread, serve_engine_pass, MAY(PICTURES) | MAY(RETURNED) | ENDS},
    [SERVE_PICTURES] = {SERVE_PICTURE_READER, serve_pictures_queue, serve_pictures_step,
                        MAY(PICTURES) | MAY(LOADING) | MAY(RETURNED) | ENDS},
    [SERVE_RETURNED] = {SERVE_READER, serve_reader_queue, serve_reader_go_on, MAY(LOADING) | MAY(ENCODING) | ENDS},
    [SERVE_ENCODING] = {SERVE_READER, NULL, serve_reader_encode, MAY(TRYING) | MAY(QUEUED) | ENDS},
    [SERVE_TRYING] = {SERVE_COMPILER, serve_grammars_tries, serve_grammars_try, MAY(COMPILING) | MAY(QUEUED) | ENDS},
    [SERVE_COMPILING] = {SERVE_COMPILER, serve_grammars_rest, serve_grammars_compile, MAY(QUEUED) | ENDS},
    [SERVE_QUEUED] = {SERVE_ENGINE, serve_engine_queue, NULL, MAY(AT_WORK) | ENDS},
    [SERVE_AT_WORK] = {SERVE_ENGINE, NULL, NULL, ENDS},
    [SERVE_CALLING] = {SERVE_TOOL_CALLER, serve_tools_queue, serve_tools_step, ENDS},
    [SERVE_DONE] = {SERVE_CONNECTION, NULL, serve_job_finish, 0},
};
