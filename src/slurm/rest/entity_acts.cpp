#include "slurm/rest/entity_acts.hpp"

#include <algorithm>
#include <set>
#include <utility>

namespace slurm {
namespace {

using accounting::Entity;
using accounting::EntityKind;
using accounting::List;
using accounting::Place;
using accounting::Settings;
using core::ErrorCode;

/// The most rows in one request. slurmdbd takes some milliseconds for each row, and the request must not time out.
constexpr std::size_t kMostRows = 200;

core::Error error_of(ErrorCode code, std::string text) {
  return {code, std::move(text), 0, {}, {}};
}

List list_of(EntityKind kind) {
  return kind == EntityKind::kAccount ? List::kAccounts : List::kUsers;
}

bool is_true(const Settings& settings, std::string_view setting) {
  const auto it = settings.find(setting);
  return it != settings.end() && it->second == true;
}

/// Returns the value of an account's or user's own setting: from `wanted`, else from `found`, else its default.
core::Json value_of(const Settings& wanted, const Settings& found, std::string_view setting) {
  return accounting::value_of(wanted.contains(setting) ? wanted : found, setting);
}

bool same_name(std::string_view a, std::string_view b) {
  return accounting::folded(a) == accounting::folded(b);
}

/// Reports whether the job belongs, or may belong, to the user: slurmrestd omits the name of a user whom slurmrestd's pod does
/// not know. slurmdbd itself refuses to delete an entity that one of its jobs uses, but it has no record of jobs that never
/// became eligible. So this check is needed.
bool may_be_of(const accounting::JobUse& job, std::string_view user) {
  return same_name(job.user, user) || (job.user.empty() && job.states.contains("PENDING"));
}

/// Reports whether the job uses the association that the account or user has at this place.
bool uses_place(const accounting::JobUse& job, EntityKind kind, const std::string& name, const Place& place) {
  if (!job.cluster.empty() && !same_name(job.cluster, place.cluster)) return false;
  if (kind == EntityKind::kAccount) return same_name(job.account, name);
  return may_be_of(job, name) && same_name(job.account, place.account) &&
         (place.partition.empty() || accounting::listed(job.partition, place.partition));
}

const accounting::Association* find_row(const accounting::View& view, EntityKind kind, const std::string& name,
                                        const Place& place) {
  for (const auto& [key, row] : *view.associations.rows) {
    const bool same = same_name(row->cluster, place.cluster) && row->partition == place.partition &&
                      same_name(row->account, kind == EntityKind::kAccount ? name : place.account) &&
                      same_name(row->user, kind == EntityKind::kUser ? name : "");
    if (same) return row.get();
  }
  return nullptr;
}

}  // namespace

struct EntityActs::Write {
  WorkPtr work;
  std::shared_ptr<const WriteEntity> act;
  bool create = false;
  bool restored = false;  ///< restore() has created the user, because slurmdbd had kept the record of a deleted user.
  bool open = true;       ///< The act has no result yet.
  std::string name;       ///< The name as slurmdbd spells it.
  Settings wanted, found;
  bool own = false;               ///< The account or user is new, or its own settings (except coordinators) differ.
  bool coordinate = false;        ///< The coordinators of the account differ.
  std::vector<Place> associate;   ///< The associations to create or change.
  std::vector<Place> dissociate;  ///< The associations to delete.

  [[nodiscard]] EntityKind kind() const { return act->kind; }
};

struct EntityActs::Batch {
  AccountingKey database;
  std::vector<WritePtr> writes;
  ViewPtr view = std::make_shared<accounting::View>();  ///< The lists as last read.
  Jobs jobs{};

  [[nodiscard]] std::vector<List> lists() const {
    std::set<List> out{List::kAssociations};
    for (const WritePtr& each : writes) {
      if (each->open) out.insert(list_of(each->kind()));
    }
    return {out.begin(), out.end()};
  }
};

struct EntityActs::Step {
  std::vector<std::vector<WritePtr>> requests;
  std::function<void(AccountingClient&, const std::vector<WritePtr>&, std::function<void(core::Result<void>)>)> send;
  std::function<void()> then;
};

struct EntityActs::Deletion {
  WritePtr write;
  Place place;
};

// --- Writes ---

void EntityActs::write(const std::shared_ptr<const WriteEntity>& act, Done done) {
  const std::string what = "write " + std::string(accounting::name_of(act->kind)) + " " + act->name;
  begin({act->database, {list_of(act->kind), List::kAssociations}, what, std::move(done)}, [this, act](const WorkPtr& work) {
    if (std::string problem = accounting::entity_name_problem(act->kind, act->name); !problem.empty())
      return fail(work, error_of(ErrorCode::kUnsupported, std::move(problem)));
    auto write = std::make_shared<Write>();
    write->work = work;
    write->act = act;
    write->create = act->create;
    write->wanted = act->settings;
    if (!batches_.add(act->database, std::move(write))) return;
    loop.after(core::Duration{0}, while_here([this, database = act->database] { next_batch(database); }));
  });
}

void EntityActs::next_batch(const AccountingKey& database) {
  const auto batch = std::make_shared<Batch>(Batch{database, batches_.next(database)});
  if (!batch->writes.empty()) read(batch, batch->lists(), [this, batch] { decide(batch); });
}

void EntityActs::fail_write(const WritePtr& write, core::Error error) {
  write->open = false;
  fail(write->work, std::move(error));
}

void EntityActs::end(const BatchPtr& batch, const core::Error& error) {
  for (const WritePtr& each : batch->writes) {
    if (each->open) fail_write(each, error);
  }
  next_batch(batch->database);
}

template <class Row, class Rows, class Key>
void EntityActs::read_list(const AccountingKey& database, void (AccountingClient::*get)(AccountingClient::Done<Row>),
                           Rows* into, Key key_of, std::function<void(core::Result<void>)> then) {
  AccountingClient* to = clusters.accounting(database);
  if (to == nullptr) return then(std::unexpected(no_client()));
  (to->*get)(while_here([into, key_of, then = std::move(then)](const core::Result<Found<Row>>& rows) {
    if (!rows) return then(std::unexpected(rows.error()));
    std::map<std::string, std::shared_ptr<const Row>> by_key;
    for (const auto& row : *rows) by_key.emplace(key_of(*row), row);
    into->rows = std::make_shared<const decltype(by_key)>(std::move(by_key));
    then({});
  }));
}

void EntityActs::read(const AccountingKey& database, const std::vector<List>& lists, const ViewPtr& into,
                      std::function<void(core::Result<void>)> then) {
  struct Reading {
    std::size_t left = 0;
    core::Result<void> result;
    std::function<void(core::Result<void>)> then;
  };
  const auto reading = std::make_shared<Reading>(Reading{lists.size(), {}, std::move(then)});
  const auto came = [reading, into](core::Result<void> result) {
    if (!result && reading->result) reading->result = std::move(result);
    if (--reading->left == 0) reading->then(std::move(reading->result));
  };
  const auto name = [](const auto& row) { return row.name; };
  const auto key = [](const accounting::Association& row) { return row.key(); };
  for (const List list : lists) {
    if (list == List::kAccounts) {
      read_list(database, &AccountingClient::accounts, &into->accounts, name, came);
    } else if (list == List::kUsers) {
      read_list(database, &AccountingClient::users, &into->users, name, came);
    } else {
      read_list(database, &AccountingClient::own_associations, &into->associations, key, came);
    }
  }
}

void EntityActs::read(const BatchPtr& batch, const std::vector<List>& lists, std::function<void()> then) {
  read(batch->database, lists, batch->view,
       [this, batch, then = std::move(then)](const core::Result<void>& came) { came ? then() : end(batch, came.error()); });
}

void EntityActs::decide(const BatchPtr& batch) {
  for (const EntityKind kind : {EntityKind::kAccount, EntityKind::kUser}) {
    const bool any = std::ranges::any_of(batch->writes, [&](const WritePtr& each) { return each->kind() == kind; });
    if (!any) continue;
    const auto all = accounting::entities(kind, *batch->view);
    for (const WritePtr& each : batch->writes) {
      if (each->kind() != kind) continue;
      const auto live = all.find(accounting::folded(each->act->name));
      decide(each, live == all.end() ? nullptr : &live->second);
    }
  }
  write_accounts(batch);
}

void EntityActs::decide(const WritePtr& write, const Entity* live) {
  if (write->create && live != nullptr)
    return fail_write(write, error_of(ErrorCode::kConflict, "slurmdbd already has one of that name"));
  if (!write->create && live == nullptr) return fail_write(write, error_of(ErrorCode::kConflict, "it is gone"));
  write->name = live == nullptr ? write->act->name : live->name;
  if (write->kind() == EntityKind::kAccount) {
    for (const std::string_view setting : {accounting::kDescription, accounting::kOrganization}) {
      const auto it = write->wanted.find(setting);
      if (it != write->wanted.end() && it->second == "") it->second = write->name;
      if (live == nullptr) write->found[std::string(setting)] = write->name;
    }
  }
  if (live != nullptr) write->found = live->settings;
  write->own = write->create;
  std::set<Place> changed;
  for (const accounting::Difference& each : accounting::differences(write->wanted, write->found)) {
    if (auto place = accounting::place_of(each.setting)) {
      changed.insert(*std::move(place));
    } else {
      (each.setting == accounting::kCoordinators ? write->coordinate : write->own) = true;
    }
  }
  for (const Place& place : changed) {
    const auto association = write->wanted.find(place.setting(accounting::kAssociation));
    const bool exists = is_true(write->found, place.setting(accounting::kAssociation));
    if (association != write->wanted.end() && association->second == false) {
      if (exists) write->dissociate.push_back(place);
    } else if (exists || association != write->wanted.end()) {
      write->associate.push_back(place);
    } else {
      return fail_write(write, error_of(ErrorCode::kConflict, place.text() + ": there is no association any more"));
    }
  }
  // Put default accounts first, because slurmdbd makes the first association of a user the default. If a later row of the same
  // request made another association the default, slurmctld could charge jobs to the first association.
  std::ranges::stable_partition(
      write->associate, [&](const Place& place) { return is_true(write->wanted, place.setting(accounting::kDefaultAccount)); });
  if (write->own || write->coordinate || !write->associate.empty() || !write->dissociate.empty()) return;
  write->open = false;
  succeed(write->work, {{"written", write->restored}});
}

void EntityActs::run(const BatchPtr& batch, const std::shared_ptr<Step>& step) {
  std::vector<WritePtr> writes;
  while (writes.empty() && !step->requests.empty()) {
    writes = std::move(step->requests.front());
    step->requests.erase(step->requests.begin());
    std::erase_if(writes, [](const WritePtr& each) { return !each->open; });
  }
  if (writes.empty()) return step->then();
  AccountingClient* to = clusters.accounting(batch->database);
  if (to == nullptr) return end(batch, no_client());
  for (const WritePtr& each : writes) note_write(each->work);
  step->send(*to, writes, while_here([this, batch, step, writes](const core::Result<void>& result) {
    if (!result && writes.size() > 1 && is_refusal(result.error())) {
      // slurmdbd has rolled back all writes because of one of them, so each is sent alone.
      std::vector<std::vector<WritePtr>> alone;
      for (const WritePtr& each : writes) alone.push_back({each});
      step->requests.insert(step->requests.begin(), alone.begin(), alone.end());
    } else if (!result) {
      for (const WritePtr& each : writes) fail_write(each, result.error());
    }
    run(batch, step);
  }));
}

namespace {

/// Divides the writes into requests of at most kMostRows rows. A single write with more rows gets a request of its own.
template <class WritePtr, class Count>
std::vector<std::vector<WritePtr>> requests_of(const std::vector<WritePtr>& writes, Count rows_of) {
  std::vector<std::vector<WritePtr>> out;
  std::size_t rows = 0;
  for (const WritePtr& each : writes) {
    const std::size_t count = rows_of(*each);
    if (count == 0) continue;
    if (out.empty() || rows + count > kMostRows) {
      out.emplace_back();
      rows = 0;
    }
    out.back().push_back(each);
    rows += count;
  }
  return out;
}

/// Returns the writes in this order: accounts, each after its parent, then users.
template <class WritePtr>
std::vector<WritePtr> in_order(const std::vector<WritePtr>& writes) {
  std::map<std::string, WritePtr> accounts;
  for (const WritePtr& each : writes) {
    if (each->kind() == EntityKind::kAccount) accounts.emplace(accounting::folded(each->name), each);
  }
  std::vector<WritePtr> out;
  std::set<WritePtr> placed;
  std::function<void(const WritePtr&)> place = [&](const WritePtr& write) {
    if (!placed.insert(write).second) return;
    for (const auto& [setting, value] : write->wanted) {
      if (accounting::without_place(setting) != accounting::kParent) continue;
      const auto parent = accounts.find(accounting::folded(value.template get<std::string>()));
      if (parent != accounts.end()) place(parent->second);
    }
    out.push_back(write);
  };
  for (const EntityKind kind : {EntityKind::kAccount, EntityKind::kUser}) {
    for (const WritePtr& each : writes) {
      if (each->kind() == kind) place(each);
    }
  }
  return out;
}

}  // namespace

void EntityActs::write_accounts(const BatchPtr& batch) {
  // Coordinators are written later, because they can be users whom the next requests create in this account.
  post_accounts(batch, false, [this, batch] { write_users(batch); });
}

void EntityActs::write_coordinators(const BatchPtr& batch) {
  const bool any = std::ranges::any_of(batch->writes, [](const WritePtr& each) { return each->open && each->coordinate; });
  if (!any) return begin_deletions(batch);
  // A new association makes an account inherit coordinators from the accounts above it, so the accounts are read again.
  read(batch, {List::kAccounts}, [this, batch] { post_accounts(batch, true, [this, batch] { begin_deletions(batch); }); });
}

void EntityActs::post_accounts(const BatchPtr& batch, bool coordinators, std::function<void()> then) {
  const auto row_of = [batch, coordinators](const Write& write) {
    accounting::Account out;
    out.name = write.name;
    out.description = value_of(write.wanted, write.found, accounting::kDescription);
    out.organization = value_of(write.wanted, write.found, accounting::kOrganization);
    const Settings& from = coordinators ? write.wanted : write.found;
    for (const core::Json& name : accounting::value_of(from, accounting::kCoordinators)) out.coordinators.insert(name);
    const auto& rows = *batch->view->accounts.rows;
    if (const auto live = rows.find(write.name); live != rows.end()) {
      for (const std::string& name : live->second->inherited_coordinators) {
        if (!out.coordinators.contains(accounting::folded(name))) out.inherited_coordinators.insert(name);
      }
    }
    return out;
  };
  const auto step = std::make_shared<Step>();
  step->requests = requests_of(batch->writes, [coordinators](const Write& each) -> std::size_t {
    return each.open && each.kind() == EntityKind::kAccount && (coordinators ? each.coordinate : each.own) ? 1 : 0;
  });
  step->send = [row_of](AccountingClient& to, const std::vector<WritePtr>& writes, auto done) {
    std::vector<accounting::Account> rows;
    for (const WritePtr& each : writes) rows.push_back(row_of(*each));
    to.write_accounts(rows, std::move(done));
  };
  step->then = std::move(then);
  run(batch, step);
}

void EntityActs::write_users(const BatchPtr& batch) {
  const auto step = std::make_shared<Step>();
  step->requests = requests_of(batch->writes, [](const Write& each) -> std::size_t {
    return each.open && each.own && each.kind() == EntityKind::kUser ? 1 : 0;
  });
  step->send = [](AccountingClient& to, const std::vector<WritePtr>& writes, auto done) {
    std::vector<AccountingClient::UserWrite> rows;
    for (const WritePtr& each : writes)
      rows.push_back({each->name, value_of(each->wanted, each->found, accounting::kAdminLevel)});
    to.write_users(rows, std::move(done));
  };
  step->then = [this, batch] { restore_deleted(batch); };
  run(batch, step);
}

/// Restores the new users whose deleted records slurmdbd keeps. For such a user, POST users only changes the record and does
/// not restore the user. The associations are written later, because slurmdbd rolls back the restore of a user with an
/// association.
void EntityActs::restore_deleted(const BatchPtr& batch) {
  const auto is_new = [](const WritePtr& each) { return each->open && each->create && each->kind() == EntityKind::kUser; };
  if (std::ranges::none_of(batch->writes, is_new)) return add_account_associations(batch);
  read(batch, {List::kUsers}, [this, batch, is_new] {
    const auto all = accounting::entities(EntityKind::kUser, *batch->view);
    for (const WritePtr& each : batch->writes) {
      if (is_new(each) && !all.contains(accounting::folded(each->name))) restore(each, *batch->view);
    }
    add_account_associations(batch);
  });
}

namespace {

/// Returns the clusters to which the account is added, and the parent of the account in them.
template <class Write>
AccountingClient::AccountAssociations new_places(const Write& write) {
  AccountingClient::AccountAssociations out;
  if (!write.open || write.kind() != EntityKind::kAccount) return out;
  for (const Place& place : write.associate) {
    if (is_true(write.found, place.setting(accounting::kAssociation))) continue;
    out.clusters.push_back(place.cluster);
    const auto parent = write.wanted.find(place.setting(accounting::kParent));
    if (parent != write.wanted.end() && parent->second != accounting::kRoot) out.parent = parent->second;
  }
  return out;
}

}  // namespace

/// Sends one request for all accounts with the same parent and the same clusters. Parents come before their child accounts.
void EntityActs::add_account_associations(const BatchPtr& batch) {
  const auto step = std::make_shared<Step>();
  for (const WritePtr& each : in_order(batch->writes)) {
    const AccountingClient::AccountAssociations places = new_places(*each);
    if (places.clusters.empty()) continue;
    const auto same = [&](const std::vector<WritePtr>& request) {
      const AccountingClient::AccountAssociations other = new_places(*request.front());
      return request.size() < kMostRows && other.clusters == places.clusters && other.parent == places.parent;
    };
    if (step->requests.empty() || !same(step->requests.back())) step->requests.emplace_back();
    step->requests.back().push_back(each);
  }
  step->send = [](AccountingClient& to, const std::vector<WritePtr>& writes, auto done) {
    AccountingClient::AccountAssociations add = new_places(*writes.front());
    for (const WritePtr& each : writes) add.accounts.push_back(each->name);
    to.add_account_associations(add, std::move(done));
  };
  step->then = [this, batch] {
    for (const WritePtr& each : batch->writes) {
      const AccountingClient::AccountAssociations added = new_places(*each);
      for (const std::string& cluster : added.clusters) {
        const Place place{"", "", cluster};
        each->found[place.setting(accounting::kAssociation)] = true;
        each->found[place.setting(accounting::kParent)] = added.parent.empty() ? std::string(accounting::kRoot) : added.parent;
      }
    }
    write_associations(batch);
  };
  run(batch, step);
}

namespace {

/// Returns the number of associations with settings that differ from what slurmdbd has.
template <class Write>
std::size_t rows_left(const Write& write) {
  std::set<Place> places;
  for (const accounting::Difference& each : accounting::differences(write.wanted, write.found)) {
    if (auto place = accounting::place_of(each.setting)) places.insert(*std::move(place));
  }
  return static_cast<std::size_t>(
      std::ranges::count_if(write.associate, [&](const Place& place) { return places.contains(place); }));
}

}  // namespace

void EntityActs::write_associations(const BatchPtr& batch) {
  const auto step = std::make_shared<Step>();
  step->requests = requests_of(in_order(batch->writes), [](const Write& each) { return each.open ? rows_left(each) : 0; });
  step->send = [](AccountingClient& to, const std::vector<WritePtr>& writes, auto done) {
    std::vector<AccountingClient::AssociationWrite> rows;
    for (const WritePtr& each : writes) {
      for (const Place& place : each->associate) {
        Settings wanted = accounting::settings_at(place, each->wanted);
        std::erase_if(wanted, [&](const auto& entry) {
          return accounting::differences({{place.setting(entry.first), entry.second}}, each->found).empty();
        });
        if (wanted.empty()) continue;
        Settings found = accounting::settings_at(place, each->found);
        if (each->kind() == EntityKind::kUser && found.empty()) {
          // slurmdbd stores a new association of a user even if the default QOS (also an inherited one) is not in the list of
          // QOS. slurmdbd then reports success, but does not inform slurmctld (_add_assoc_internal in as_mysql_assoc.c;
          // slurmrestd ignores its answer). For an existing association, slurmdbd refuses such values. So the first row creates
          // the association, and a second row sets both the default QOS and the list.
          Settings apart;
          for (const std::string_view setting : {accounting::kDefaultQos, accounting::kQosList}) {
            if (auto entry = wanted.extract(std::string(setting))) apart.insert(std::move(entry));
          }
          if (!apart.empty()) {
            rows.push_back({each->kind(), each->name, place, found, wanted});
            found = std::move(wanted);
            wanted = std::move(apart);
          }
        }
        rows.push_back({each->kind(), each->name, place, std::move(found), std::move(wanted)});
      }
    }
    to.write_associations(rows, std::move(done));
  };
  step->then = [this, batch] { write_coordinators(batch); };
  run(batch, step);
}

void EntityActs::begin_deletions(const BatchPtr& batch) {
  std::vector<Deletion> all;
  for (const WritePtr& each : batch->writes) {
    for (std::size_t i = 0; each->open && i < each->dissociate.size(); ++i) all.push_back({each, each->dissociate[i]});
  }
  if (all.empty()) return read_back(batch);
  // delete_next() begins at the end, so the associations of default accounts come first here and are deleted last: slurmdbd
  // refuses to delete such an association while the user has other associations.
  std::ranges::stable_partition(
      all, [](const Deletion& each) { return is_true(each.write->found, each.place.setting(accounting::kDefaultAccount)); });
  read(batch, {List::kAssociations}, [this, batch, all = std::move(all)] {
    with_jobs(batch->database, [this, batch, all](const core::Result<Jobs>& jobs) {
      if (!jobs) {
        for (const Deletion& each : all) {
          if (each.write->open) fail_write(each.write, jobs.error().with(each.place.text()));
        }
        return read_back(batch);
      }
      batch->jobs = *jobs;
      delete_next(batch, all, {}, false);
    });
  });
}

void EntityActs::delete_next(const BatchPtr& batch, std::vector<Deletion> left, std::vector<Deletion> held, bool progress) {
  if (left.empty()) {
    // Try the held associations again: the association that used one of them may have been deleted meanwhile.
    if (!held.empty() && progress) return delete_next(batch, std::move(held), {}, false);
    for (const Deletion& each : held) {
      if (!each.write->open) continue;
      const auto* row = find_row(*batch->view, each.write->kind(), each.write->name, each.place);
      fail_write(each.write, error_of(ErrorCode::kBusy, each.place.text() + ": " + use_of_association(*row, *batch->view)));
    }
    return read_back(batch);
  }
  const Deletion deletion = std::move(left.back());
  left.pop_back();
  const WritePtr& write = deletion.write;
  const auto* row = find_row(*batch->view, write->kind(), write->name, deletion.place);
  if (!write->open || row == nullptr) return delete_next(batch, std::move(left), std::move(held), progress);
  if (!use_of_association(*row, *batch->view).empty()) {
    held.push_back(deletion);
    return delete_next(batch, std::move(left), std::move(held), progress);
  }
  if (auto error = busy(batch->jobs, [&](const accounting::JobUse& job) {
        return uses_place(job, write->kind(), write->name, deletion.place);
      })) {
    fail_write(write, error->with(deletion.place.text()));
    return delete_next(batch, std::move(left), std::move(held), progress);
  }
  AccountingClient* to = clusters.accounting(batch->database);
  if (to == nullptr) return end(batch, no_client());
  note_write(write->work);
  to->delete_association(*row, while_here([this, batch, deletion, key = row->key(), left = std::move(left),
                                           held = std::move(held), progress](const core::Result<void>& result) {
    if (!result) {
      fail_write(deletion.write, result.error().with(deletion.place.text()));
    } else {
      auto rows = *batch->view->associations.rows;
      rows.erase(key);
      batch->view->associations.rows = std::make_shared<const decltype(rows)>(std::move(rows));
    }
    delete_next(batch, left, held, progress || result.has_value());
  }));
}

void EntityActs::read_back(const BatchPtr& batch) {
  const bool open = std::ranges::any_of(batch->writes, [](const WritePtr& each) { return each->open; });
  if (!open) return next_batch(batch->database);
  read(batch, batch->lists(), [this, batch] { compare(batch); });
}

/// Compares the wanted with the stored values, because slurmdbd reports success for some writes that it drops wholly or partly.
void EntityActs::compare(const BatchPtr& batch) {
  for (const EntityKind kind : {EntityKind::kAccount, EntityKind::kUser}) {
    const auto all = accounting::entities(kind, *batch->view);
    for (const WritePtr& each : batch->writes) {
      if (!each->open || each->kind() != kind) continue;
      const auto live = all.find(accounting::folded(each->name));
      if (live == all.end()) {
        fail_write(each, error_of(ErrorCode::kInvalid,
                                  "slurmdbd reported success, and has no such " + std::string(accounting::name_of(kind))));
        continue;
      }
      std::string lost;
      for (const accounting::Difference& difference : accounting::differences(each->wanted, live->second.settings))
        lost += (lost.empty() ? "" : "; ") + difference.text();
      if (!lost.empty()) {
        fail_write(each, error_of(ErrorCode::kInvalid, "slurmdbd reported success, and stored something else: " + lost));
      } else {
        each->open = false;
        succeed(each->work, {{"written", true}});
      }
    }
  }
  next_batch(batch->database);
}

/// Creates a user whose deleted record slurmdbd keeps, because POST users would only change that record. The next batch writes
/// the remaining settings.
void EntityActs::restore(const WritePtr& write, const accounting::View& view) {
  write->open = false;  // If the restore succeeds, the next batch answers the act.
  std::optional<Place> at;
  for (const auto& [setting, value] : write->wanted) {
    const std::string_view field = accounting::without_place(setting);
    const bool first = !at && field == accounting::kAssociation;
    if (value != true || !(first || field == accounting::kDefaultAccount)) continue;
    const auto place = accounting::place_of(setting);
    if (find_row(view, EntityKind::kUser, write->name, *place) == nullptr) at = place;
  }
  if (!at)
    return fail_write(write, error_of(ErrorCode::kUnsupported,
                                      "slurmdbd has a deleted user of this name, and slurmrestd can only restore it with a new "
                                      "association"));
  AccountingClient* to = clusters.accounting(write->work->database);
  if (to == nullptr) return fail_write(write, no_client());
  note_write(write->work);
  to->restore_user({write->name, value_of(write->wanted, {}, accounting::kAdminLevel)}, *at,
                   while_here([this, write](const core::Result<void>& result) {
                     if (!result) return fail_write(write, result.error());
                     const auto again = std::make_shared<Write>();
                     again->work = write->work;
                     again->act = write->act;
                     again->restored = true;
                     again->wanted = write->wanted;
                     if (batches_.add(again->work->database, again)) next_batch(again->work->database);
                   }));
}

// --- Deletions ---

void EntityActs::remove(const std::shared_ptr<const DeleteEntity>& act, core::MonoTime asked, Done done) {
  const UnusedEntity& evidence = act->evidence;
  const std::string what = "delete " + std::string(accounting::name_of(evidence.entity())) + " " + evidence.name();
  begin({evidence.database(), {list_of(evidence.entity()), List::kAssociations}, what, std::move(done)},
        [this, act, asked](const WorkPtr& work) {
          if (!act->evidence.good_at(asked))
            return fail(work, error_of(ErrorCode::kExpired, "slurmdbd's answer about it is too old"));
          const auto view = std::make_shared<accounting::View>();
          read(work->database, work->lists, view, [this, work, act, view](const core::Result<void>& came) {
            const UnusedEntity& is = act->evidence;
            if (!came) return fail(work, came.error());
            if (!accounting::find_entity(is.entity(), is.name(), *view)) return succeed(work, {{"deleted", false}});
            if (std::string use = use_of_entity(is.entity(), is.name(), is.known(), *view); !use.empty())
              return fail(work, error_of(ErrorCode::kBusy, std::move(use)));
            with_jobs(work->database, [this, work, act](const core::Result<Jobs>& jobs) {
              if (!jobs) return fail(work, jobs.error());
              const UnusedEntity& gone = act->evidence;
              auto held = busy(*jobs, [&](const accounting::JobUse& job) {
                if (gone.entity() == EntityKind::kAccount) return same_name(job.account, gone.name());
                return same_name(job.user, gone.name()) || std::ranges::any_of(gone.known(), [&](const Place& place) {
                         return uses_place(job, EntityKind::kUser, gone.name(), place);
                       });
              });
              if (held) return fail(work, *std::move(held));
              send_deletion(work, act->evidence);
            });
          });
        });
}

void EntityActs::send_deletion(const WorkPtr& work, const UnusedEntity& evidence) {
  AccountingClient* to = client(work);
  if (to == nullptr) return;
  note_write(work);
  to->delete_entity(
      evidence.entity(), evidence.name(),
      while_here([this, work, kind = evidence.entity(), name = evidence.name()](const core::Result<void>& result) {
        if (!result) return fail(work, result.error());
        const auto view = std::make_shared<accounting::View>();
        read(work->database, {list_of(kind)}, view, [this, work, kind, name, view](const core::Result<void>& came) {
          if (!came) return fail(work, came.error());
          if (accounting::find_entity(kind, name, *view))
            return fail(work, error_of(ErrorCode::kInvalid, "slurmdbd reported success, and still has it"));
          succeed(work, {{"deleted", true}});
        });
      }));
}

}  // namespace slurm
