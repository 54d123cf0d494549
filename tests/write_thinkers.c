/* Writes the models of script_model.h: FOLDER/thinker.gguf, which ends its thought, FOLDER/ponderer.gguf, which never
 * does, and FOLDER/filler.gguf, which fills in the middle. */
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
    return 0;
}
