// CUPTI's one place for a subscriber (before 13.3), and who has it. Application threads.
#ifndef GPUPERF_SESSION_SLOT_H_
#define GPUPERF_SESSION_SLOT_H_

#include <string>

#include "cupti/cupti_api.h"

namespace gpuperf::session {

struct Slot {
  bool free = false;
  std::string holder;  // its name, "" if it has none or nobody tells
  std::string error;   // why CUPTI could not be asked
};

// Takes the place and gives it back at once.
Slot ProbeSlot(const cupti::Api& api);

// Name of the holder after a refusal, "" if nobody tells.
std::string SlotHolder(const cupti::Api& api);

}  // namespace gpuperf::session

#endif  // GPUPERF_SESSION_SLOT_H_
