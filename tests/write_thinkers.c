/* Writes the models of script_model.h that think: FOLDER/thinker.gguf, which ends its thought, and
 * FOLDER/ponderer.gguf, which never does. */
#include "script_model.h"

int main(int argc, char **argv)
{
    char path[4096];
    if (argc != 2) return 2;
    snprintf(path, sizeof path, "%s/thinker.gguf", argv[1]);
    script_write_thinker(path, true);
    snprintf(path, sizeof path, "%s/ponderer.gguf", argv[1]);
    script_write_thinker(path, false);
    return 0;
}
