#include <sentencepiece_processor.h>

#include <exception>
#include <memory>
#include <new>
#include <vector>

extern "C" {
#include "text/sentencepiece.h"
}

struct pd_sentencepiece {
    sentencepiece::SentencePieceProcessor processor;
};

static_assert(sizeof(int) == sizeof(int32_t), "ids are handed over as they are");

namespace {

/* sentencepiece's own status, or absl's where it is built with that. */
template <typename Status> peridot_status check(const Status &status)
{
    if (status.ok()) return PERIDOT_OK;
    return pd_fail(PERIDOT_ERROR_FORMAT, "sentencepiece refuses the vocabulary: %.300s", status.ToString().c_str());
}

/* No exception may pass into C. */
template <typename Function> peridot_status guarded(const Function &function)
{
    try {
        return function();
    } catch (const std::bad_alloc &) {
        return pd_fail(PERIDOT_ERROR_MEMORY, "out of memory in sentencepiece");
    } catch (const std::exception &e) {
        return pd_fail(PERIDOT_ERROR_FORMAT, "sentencepiece: %.300s", e.what());
    } catch (...) {
        return pd_fail(PERIDOT_ERROR_FORMAT, "sentencepiece failed");
    }
}

}

extern "C" peridot_status pd_sentencepiece_create(pd_sentencepiece **out, const void *model, size_t size)
{
    *out = nullptr;
    return guarded([&] {
        auto sp = std::make_unique<pd_sentencepiece>();
        peridot_status status = check(sp->processor.LoadFromSerializedProto({static_cast<const char *>(model), size}));
        if (status == PERIDOT_OK) *out = sp.release();
        return status;
    });
}

extern "C" void pd_sentencepiece_free(pd_sentencepiece *sp)
{
    delete sp;
}

extern "C" peridot_status pd_sentencepiece_encode(pd_ids *out, const pd_sentencepiece *sp, const char *text, size_t size)
{
    return guarded([&] {
        std::vector<int> ids;
        peridot_status status = check(sp->processor.Encode(std::string_view(text, size), &ids));
        return status == PERIDOT_OK ? pd_ids_append(out, ids.data(), ids.size()) : status;
    });
}
