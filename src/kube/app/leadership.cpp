#include "kube/app/leadership.hpp"

namespace kube {

Leadership::Leadership(core::Loop& loop, core::Random& random, core::Logger& logger, Client& client,
                       std::optional<LeaseOptions> election, Metrics* metrics, Callbacks callbacks)
    : client_(client), metrics_(metrics), callbacks_(std::move(callbacks)) {
  if (!election) return;
  lease_ = election->key.name;
  LeaderElection::Callbacks of_lease;
  of_lease.on_leading = [this] { won(); };
  of_lease.on_lost = [this](const std::string& why) { lost(why); };
  of_lease.on_slow_renewal = [this] {
    if (metrics_ != nullptr) metrics_->slow_renewal(lease_);
  };
  election_ = std::make_unique<LeaderElection>(loop, random, logger, client, std::move(*election), std::move(of_lease));
  client_.set_lease_deadline([lease = election_.get()] { return lease->deadline(); });
}

Leadership::~Leadership() {
  if (election_) client_.set_lease_deadline([]() -> std::optional<core::MonoTime> { return std::nullopt; });
}

void Leadership::start() {
  if (!election_) return won();
  report(false);  // A standby reports that it does not lead.
  election_->start();
}

void Leadership::won() {
  leads_ = true;
  report(true);
  callbacks_.on_leading();
}

void Leadership::lost(const std::string& why) {
  leads_ = false;
  report(false);
  callbacks_.on_lost(why);
}

void Leadership::report(bool leading) {
  if (metrics_ != nullptr && election_) metrics_->leader(lease_, leading);
}

void Leadership::give_up(bool writes_under_way, std::function<void()> done) {
  if (!election_) return done();
  if (!writes_under_way) return election_->release(std::move(done));
  election_->end();
  done();
}

}  // namespace kube
