#include "slurm/rest/decode_accounting.hpp"

#include <algorithm>
#include <span>
#include <utility>

#include "slurm/accounting/entities.hpp"
#include "slurm/accounting/qos.hpp"
#include "slurm/rest/reader.hpp"

namespace slurm {
namespace {

using accounting::Limits;

std::string tres_name(std::string_view type, std::string_view name) {
  return std::string(type) + (name.empty() ? "" : "/") + std::string(name);
}

/// Reads [{"type": "gres", "name": "gpu", "count": 8}].
std::map<std::string, std::int64_t> tres_counts(od::value value) {
  std::map<std::string, std::int64_t> out;
  if (value.type() != od::json_type::array) return out;
  for (auto item : value.get_array()) {
    std::string type, name;
    std::int64_t count = 0;
    for (auto field : item.get_object()) {
      const std::string_view key = field.unescaped_key();
      if (key == "type") type = text_of(field.value());
      if (key == "name") name = text_of(field.value());
      if (key == "count") count = integer_of(field.value());
    }
    if (!type.empty()) out[tres_name(type, name)] = count;
  }
  return out;
}

void set_count(Limits& limits, std::string_view name, const Number& number) {
  if (!std::holds_alternative<Unset>(number)) limits.counts.emplace(name, number);
}

/// Stores the value in the limit whose field has this path. Returns false if no field has this path.
bool take_limit(Limits& limits, std::span<const accounting::QosField> fields, std::string_view path, od::value value) {
  const auto field = std::ranges::find(fields, path, &accounting::QosField::path);
  if (field == fields.end()) return false;
  if (field->form != accounting::FieldForm::kTres) {
    set_count(limits, field->name, number_of(value));
  } else if (auto values = tres_counts(value); !values.empty()) {
    limits.tres.emplace(field->name, std::move(values));
  }
  return true;
}

std::string required(std::string name, std::string_view what) {
  if (name.empty()) throw Nonsense{std::string(what) + " without a name"};
  return name;
}

accounting::Qos qos_of(od::object object) {
  accounting::Qos qos;
  walk(object, "", [&](std::string_view path, od::value value) {
    if (path == "id") {
      qos.id = integer_of(value);
    } else if (path == "name") {
      qos.name = text_of(value);
    } else if (path == "description") {
      qos.description = text_of(value);
    } else if (path == "flags") {
      for_words(value, [&](std::string_view word) { qos.flags.emplace(word); });
    } else if (path == "preempt/list") {
      qos.preempts = words_of(value);
    } else if (path == "preempt/mode") {
      qos.preempt_modes = words_of(value);
    } else if (path == "limits/grace_time") {
      qos.grace_seconds = integer_of(value);
    } else if (path == "limits/factor") {
      qos.limit_factor = fraction_of(value);
    } else if (path == "usage_factor") {
      qos.usage_factor = fraction_of(value);
    } else if (path == "usage_threshold") {
      qos.usage_threshold = fraction_of(value);
    } else if (path == "priority") {
      qos.priority = number_of(value);
    } else if (path == "preempt/exempt_time") {
      qos.preempt_exempt_seconds = number_of(value);
    } else {
      return take_limit(qos.limits, accounting::kQosFields, path, value);
    }
    return true;
  });
  qos.name = required(std::move(qos.name), "a QOS");
  return qos;
}

accounting::Association association_of(od::object object) {
  accounting::Association out;
  walk(object, "", [&](std::string_view path, od::value value) {
    if (path == "id" || path == "id/id") {
      // Before v0.0.42, `id` is an object that repeats the names of the association and has the number in its own `id`.
      if (value.type() == od::json_type::object) return false;
      out.id = integer_of(value);
    } else if (path == "cluster") {
      out.cluster = text_of(value);
    } else if (path == "account") {
      out.account = text_of(value);
    } else if (path == "user") {
      out.user = text_of(value);
    } else if (path == "partition") {
      out.partition = text_of(value);
    } else if (path == "parent_account") {
      out.parent_account = text_of(value);
    } else if (path == "default/qos") {
      out.default_qos = text_of(value);
    } else if (path == "comment") {
      out.comment = text_of(value);
    } else if (path == "qos") {
      out.qos = words_of(value);
    } else if (path == "shares_raw") {
      out.shares = integer_of(value);
    } else if (path == "is_default") {
      out.is_default = truth_of(value);
    } else if (path == "priority") {
      out.priority = number_of(value);
    } else {
      return take_limit(out.limits, accounting::kAssociationFields, path, value);
    }
    return true;
  });
  out.account = required(std::move(out.account), "an association, of an account");
  out.cluster = required(std::move(out.cluster), "an association, of a cluster");
  return out;
}

/// Reads [{"name": "ann", "direct": true}].
void take_coordinators(accounting::Account& account, od::value value) {
  if (value.type() != od::json_type::array) return;
  for (auto item : value.get_array()) {
    std::string name;
    bool direct = false;
    for (auto field : item.get_object()) {
      const std::string_view key = field.unescaped_key();
      if (key == "name") name = text_of(field.value());
      if (key == "direct") direct = truth_of(field.value());
    }
    (direct ? account.coordinators : account.inherited_coordinators).insert(required(std::move(name), "a coordinator"));
  }
}

}  // namespace

core::Result<Decoded<accounting::Tres>> decode_tres(std::string body) {
  return decode_list<accounting::Tres>(std::move(body), "TRES", [](od::object object) {
    accounting::Tres tres;
    std::string type, name;
    walk(object, "", [&](std::string_view path, od::value value) {
      if (path == "id") tres.id = integer_of(value);
      if (path == "type") type = text_of(value);
      if (path == "name") name = text_of(value);
      return true;
    });
    tres.name = tres_name(required(std::move(type), "a TRES"), name);
    return tres;
  });
}

core::Result<Decoded<accounting::Qos>> decode_qos(std::string body) {
  return decode_list<accounting::Qos>(std::move(body), "qos", qos_of);
}

core::Result<Decoded<accounting::Account>> decode_accounts(std::string body) {
  return decode_list<accounting::Account>(std::move(body), "accounts", [](od::object object) {
    accounting::Account account;
    walk(object, "", [&](std::string_view path, od::value value) {
      if (path == "name") account.name = text_of(value);
      if (path == "description") account.description = text_of(value);
      if (path == "organization") account.organization = text_of(value);
      if (path == "coordinators") take_coordinators(account, value);
      return true;
    });
    account.name = required(std::move(account.name), "an account");
    return account;
  });
}

core::Result<Decoded<accounting::User>> decode_users(std::string body) {
  return decode_list<accounting::User>(std::move(body), "users", [](od::object object) {
    accounting::User user;
    walk(object, "", [&](std::string_view path, od::value value) {
      if (path == "default") return false;
      if (path == "name") user.name = text_of(value);
      if (path == "default/account") user.default_account = text_of(value);
      if (path == "administrator_level") for_words(value, [&](std::string_view word) { user.admin_levels.emplace(word); });
      return true;
    });
    user.name = required(std::move(user.name), "a user");
    return user;
  });
}

core::Result<Decoded<accounting::Association>> decode_associations(std::string body) {
  return decode_list<accounting::Association>(std::move(body), "associations", association_of);
}

core::Result<Decoded<accounting::Cluster>> decode_clusters(std::string body) {
  return decode_list<accounting::Cluster>(std::move(body), "clusters", [](od::object object) {
    accounting::Cluster cluster;
    walk(object, "", [&](std::string_view path, od::value value) {
      if (path == "controller") return false;
      if (path == "name") cluster.name = text_of(value);
      if (path == "controller/host") cluster.host = text_of(value);
      if (path == "controller/port") cluster.port = integer_of(value);
      return true;
    });
    cluster.name = required(std::move(cluster.name), "a cluster");
    return cluster;
  });
}

core::Result<Decoded<accounting::JobUse>> decode_job_uses(std::string body) {
  return decode_list<accounting::JobUse>(std::move(body), "jobs", [](od::object object) {
    accounting::JobUse job;
    walk(object, "", [&](std::string_view path, od::value value) {
      if (path == "state") return false;
      if (path == "job_id") job.id = integer_of(value);
      if (path == "cluster") job.cluster = text_of(value);
      if (path == "qos") job.qos = text_of(value);
      if (path == "account") job.account = text_of(value);
      if (path == "user_name" || path == "user") job.user = text_of(value);
      if (path == "partition") job.partition = text_of(value);
      if (path == "state/current" || path == "job_state")
        for_words(value, [&](std::string_view word) { job.states.emplace(word); });
      return true;
    });
    return job;
  });
}

}  // namespace slurm
