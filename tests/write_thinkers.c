/* Writes the models of script_model.h: FOLDER/thinker.gguf, which ends its thought, FOLDER/ponderer.gguf, which never
 * does, FOLDER/filler.gguf, which fills in the middle, and FOLDER/caller.gguf, FOLDER/caller-seer.gguf and
 * FOLDER/caller-gemma4.gguf, which call a function; the second of them sees; FOLDER/cutter.gguf, whose tokens end
 * within characters; FOLDER/agent.gguf, which does an agent's task; FOLDER/harmony.gguf and harmony-name.gguf, whose
 * replies are gpt-oss's. And FOLDER/caller-FORMAT.gguf of other formats of calls. */
#include "script_model.h"

int main(int argc, char **argv)
{
    char path[4096];
    if (argc != 2) return 2;
    snprintf(path, sizeof path, "%s/thinker.gguf", argv[1]);
    script_write_thinker(path, true);
    snprintf(path, sizeof path, "%s/ponderer.gguf", argv[1]);
    script_write_thinker(path, false);
    snprintf(path, sizeof path, "%s/filler.gguf", argv[1]);
    script_write_filler(path);
    snprintf(path, sizeof path, "%s/caller.gguf", argv[1]);
    script_write_caller(path, false);
    snprintf(path, sizeof path, "%s/caller-seer.gguf", argv[1]);
    script_write_caller(path, true);
    snprintf(path, sizeof path, "%s/caller-gemma4.gguf", argv[1]);
    script_write_caller_gemma4(path);
    snprintf(path, sizeof path, "%s/cutter.gguf", argv[1]);
    script_write_cutter(path);
    snprintf(path, sizeof path, "%s/agent.gguf", argv[1]);
    script_write_agent(path);
    snprintf(path, sizeof path, "%s/harmony.gguf", argv[1]);
    script_write_harmony(path, false);
    snprintf(path, sizeof path, "%s/harmony-name.gguf", argv[1]);
    script_write_harmony(path, true);
    for (size_t i = 0; i < PD_COUNT(script_callers); i++) {
        snprintf(path, sizeof path, "%s/caller-%s.gguf", argv[1], script_callers[i].name);
        script_write_caller_of(path, &script_callers[i]);
    }
    return 0;
}
