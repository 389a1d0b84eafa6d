// Tests neither read nor fill the user's cache.
#include <cstdlib>

namespace {
[[maybe_unused]] const int kNoCache = ::setenv("CUVIL_CACHE_DIR", "off", 1);
}
