#include "enlist/store/store.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sqlite3.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <deque>
#include <initializer_list>
#include <string_view>
#include <system_error>
#include <type_traits>
#include <utility>

#include "core/hash.hpp"
#include "enlist/wire/messages.hpp"

namespace enlist {
namespace {

namespace fs = std::filesystem;
using core::ErrorCode;
using core::fail;

/// PRAGMA application_id of our files: "slen".
constexpr int kApplication = 0x736c656e;
/// PRAGMA user_version: the version of the tables. A new version needs code here that migrates older files.
constexpr int kSchema = 1;

core::Json row_json(const core::Json& value) {
  return value;
}
template <class T>
core::Json row_json(const T& row) {
  return to_json(row);
}
template <class T>
core::Result<T> read_row(const core::Json& json) {
  if constexpr (std::is_same_v<T, core::Json>) {
    return json;
  } else {
    return from_json<T>(json);
  }
}

/// Calls `call` for each table, with its name and its members in Contents and in Changes. Stops at the first error.
template <class Call>
core::Result<void> each_table(Call call) {
  core::Result<void> done = call("pool", &Contents::pools, &Changes::pools);
  if (done) done = call("node", &Contents::nodes, &Changes::nodes);
  if (done) done = call("token", &Contents::tokens, &Changes::tokens);
  if (done) done = call("value", &Contents::values, &Changes::values);
  return done;
}

struct Closed {
  void operator()(sqlite3* database) const { sqlite3_close(database); }
  void operator()(sqlite3_stmt* statement) const { sqlite3_finalize(statement); }
};
using Statement = std::unique_ptr<sqlite3_stmt, Closed>;

/// The SQLite file. Its functions block. Only one thread may use it at a time.
class Database {
 public:
  explicit Database(const fs::path& file) : file_(file) {}

  core::Result<void> open() {
    if (auto made = make_file(); !made) return made;
    sqlite3* opened = nullptr;
    const int code = sqlite3_open_v2(file_.c_str(), &opened, SQLITE_OPEN_READWRITE, nullptr);
    database_.reset(opened);
    if (code != SQLITE_OK) return failure(code);
    sqlite3_extended_result_codes(opened, 1);
    // SQLite holds the lock of the exclusive mode until the file is closed or the process ends, however it ends. In this mode,
    // it needs no shared-memory file beside ours. There is no busy timeout, because a second coordinator must exit at once.
    core::Result<void> done = run("PRAGMA locking_mode=EXCLUSIVE; BEGIN EXCLUSIVE; COMMIT");
    if (!done) return done;
    const auto ours = is_ours();
    if (!ours) return std::unexpected(ours.error());
    done = run("PRAGMA journal_mode=WAL; PRAGMA synchronous=FULL");
    if (done && !*ours) done = make_tables();
    if (done) done = make_private();
    if (done) done = check();
    if (done) done = prepare();
    return done;
  }

  core::Result<Contents> load() {
    Contents out;
    const auto done = each_table([&](const char* table, auto contents, auto) -> core::Result<void> {
      Statement select;
      if (auto prepared = prepare(select, fmt::format("SELECT name, json FROM {}", table)); !prepared) return prepared;
      int code = SQLITE_OK;
      while ((code = sqlite3_step(select.get())) == SQLITE_ROW) {
        const std::string name = column_text(select.get(), 0);
        auto& rows = out.*contents;
        using Row = typename std::remove_cvref_t<decltype(rows)>::mapped_type;
        auto json = core::parse_json(column_text(select.get(), 1));
        auto row = json ? read_row<Row>(*json) : core::Result<Row>(std::unexpected(json.error()));
        if (!row) return invalid(fmt::format("row \"{}\" of table {}: {}", name, table, row.error().message));
        rows.emplace(name, *std::move(row));
      }
      return code == SQLITE_DONE ? core::Result<void>{} : failure(code);
    });
    if (!done) return std::unexpected(done.error());
    return out;
  }

  /// Writes all rows, or none.
  core::Result<void> write(const Changes& changes) {
    auto done = step(begin_.get());
    if (!done) return done;
    done = each_table([&](std::string_view table, auto, auto changed) -> core::Result<void> {
      const Writers& writers = writers_.find(table)->second;
      for (const auto& [name, row] : changes.*changed) {
        auto written =
            row ? step(writers.put.get(), {name, core::canonical(row_json(*row))}) : step(writers.erase.get(), {name});
        if (!written) return written;
      }
      return {};
    });
    if (done) done = step(commit_.get());
    // After some errors, SQLite has already rolled back by itself.
    if (!done && sqlite3_get_autocommit(database_.get()) == 0) (void)step(rollback_.get());
    return done;
  }

 private:
  struct Writers {
    Statement put, erase;
  };

  [[nodiscard]] std::unexpected<core::Error> invalid(const std::string& why) const {
    return fail(ErrorCode::kInvalid, fmt::format("{}: {}", file_.string(), why));
  }

  /// `cause`: the errno of the system call that failed; 0: unknown. SQLite itself loses it when a COMMIT fails.
  [[nodiscard]] std::unexpected<core::Error> failure(int code, int cause = 0) const {
    switch (code & 0xff) {
      case SQLITE_BUSY:
        return fail(ErrorCode::kUnavailable,
                    fmt::format("{}: another process has it open. Does a coordinator run already?", file_.string()));
      case SQLITE_NOTADB:
        return invalid("is not an SQLite file");
      case SQLITE_CORRUPT:
        return invalid("is damaged: restore it from a backup");
      default:
        break;
    }
    std::string why = database_ ? sqlite3_errmsg(database_.get()) : sqlite3_errstr(code);
    if (cause == 0 && database_) cause = sqlite3_system_errno(database_.get());
    const bool of_system = (code & 0xff) == SQLITE_IOERR || (code & 0xff) == SQLITE_CANTOPEN;
    if (of_system && cause != 0) why += fmt::format(" ({})", std::generic_category().message(cause));
    return fail(ErrorCode::kUnavailable, fmt::format("{}: {}", file_.string(), why));
  }

  [[nodiscard]] std::unexpected<core::Error> system_failure() const {
    return fail(ErrorCode::kUnavailable, fmt::format("{}: {}", file_.string(), std::generic_category().message(errno)));
  }

  /// Creates the file if it is missing, because SQLite would create it readable for others. Does not open an existing file,
  /// because POSIX drops all locks of a process on a file when the process closes any descriptor of the file.
  [[nodiscard]] core::Result<void> make_file() const {
    const int made = ::open(file_.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    if (made < 0) return errno == EEXIST ? core::Result<void>{} : system_failure();
    close(made);
    return {};
  }

  /// Reports whether the file has our tables. False: it is empty, and gets them. Error: kInvalid for files of other programs
  /// and of newer versions.
  core::Result<bool> is_ours() {
    const auto application = number("PRAGMA application_id"), schema = number("PRAGMA user_version"),
               tables = number("SELECT count(*) FROM sqlite_master");
    for (const auto* read : {&application, &schema, &tables}) {
      if (!*read) return std::unexpected(read->error());
    }
    if (*application == 0 && *schema == 0 && *tables == 0) return false;
    if (*application != kApplication) return invalid("is a file of another program");
    if (*schema > kSchema) {
      return invalid(
          fmt::format("was written by a newer slurm-enlist: its schema is {}, this version knows {}", *schema, kSchema));
    }
    if (*schema < 1) return invalid(fmt::format("has the schema {}, which no version has written", *schema));
    return true;
  }

  core::Result<void> make_tables() {
    std::string tables;
    (void)each_table([&](std::string_view table, auto, auto) -> core::Result<void> {
      tables += fmt::format("CREATE TABLE {}(name TEXT PRIMARY KEY NOT NULL, json TEXT NOT NULL) STRICT;", table);
      return {};
    });
    return run(
        fmt::format("BEGIN; PRAGMA application_id={}; PRAGMA user_version={}; {} COMMIT", kApplication, kSchema, tables));
  }

  /// Sets the mode of the file and of its journal to 0600, because files that were restored from a backup may be readable for
  /// others. SQLite creates a journal with the mode of the file.
  [[nodiscard]] core::Result<void> make_private() const {
    if (chmod(file_.c_str(), 0600) != 0) return system_failure();
    if (chmod((file_.string() + "-wal").c_str(), 0600) != 0 && errno != ENOENT) return system_failure();
    return {};
  }

  /// Looks for damage that load() would not find: if somebody restores a copy and leaves the journal of the former file beside
  /// it, the rows are a mix of both files.
  core::Result<void> check() {
    Statement select;
    if (auto prepared = prepare(select, "PRAGMA quick_check(1)"); !prepared) return prepared;
    const int code = sqlite3_step(select.get());
    if (code != SQLITE_ROW) return failure(code);
    return column_text(select.get(), 0) == "ok" ? core::Result<void>{} : failure(SQLITE_CORRUPT);
  }

  core::Result<void> prepare() {
    core::Result<void> done = prepare(begin_, "BEGIN IMMEDIATE");
    if (done) done = prepare(commit_, "COMMIT");
    if (done) done = prepare(rollback_, "ROLLBACK");
    if (!done) return done;
    return each_table([&](const char* table, auto, auto) -> core::Result<void> {
      Writers& writers = writers_[table];
      auto prepared = prepare(writers.put, fmt::format("INSERT INTO {}(name, json) VALUES(?, ?) "
                                                       "ON CONFLICT(name) DO UPDATE SET json = excluded.json",
                                                       table));
      return prepared ? prepare(writers.erase, fmt::format("DELETE FROM {} WHERE name = ?", table)) : prepared;
    });
  }

  core::Result<void> prepare(Statement& out, const std::string& sql) {
    sqlite3_stmt* made = nullptr;
    const int code = sqlite3_prepare_v3(database_.get(), sql.c_str(), -1, SQLITE_PREPARE_PERSISTENT, &made, nullptr);
    out.reset(made);
    return code == SQLITE_OK ? core::Result<void>{} : failure(code);
  }

  core::Result<void> run(const std::string& sql) {
    const int code = sqlite3_exec(database_.get(), sql.c_str(), nullptr, nullptr, nullptr);
    if (code == SQLITE_OK) return {};
    auto out = failure(code);
    if (sqlite3_get_autocommit(database_.get()) == 0) sqlite3_exec(database_.get(), "ROLLBACK", nullptr, nullptr, nullptr);
    return out;
  }

  core::Result<int> number(const std::string& sql) {
    Statement select;
    if (auto prepared = prepare(select, sql); !prepared) return std::unexpected(prepared.error());
    const int code = sqlite3_step(select.get());
    if (code != SQLITE_ROW) return failure(code);
    return sqlite3_column_int(select.get(), 0);
  }

  /// Runs a statement that returns no rows.
  core::Result<void> step(sqlite3_stmt* statement, std::initializer_list<std::string_view> texts = {}) {
    int at = 0;
    int code = SQLITE_OK;
    errno = 0;
    for (const std::string_view text : texts) {
      if (code == SQLITE_OK) code = sqlite3_bind_text64(statement, ++at, text.data(), text.size(), SQLITE_STATIC, SQLITE_UTF8);
    }
    if (code == SQLITE_OK) code = sqlite3_step(statement);
    const auto done = code == SQLITE_DONE ? core::Result<void>{} : failure(code, errno);
    sqlite3_reset(statement);
    sqlite3_clear_bindings(statement);
    return done;
  }

  static std::string column_text(sqlite3_stmt* row, int column) {
    const unsigned char* data = sqlite3_column_text(row, column);
    return {reinterpret_cast<const char*>(data), static_cast<std::size_t>(sqlite3_column_bytes(row, column))};
  }

  fs::path file_;
  std::unique_ptr<sqlite3, Closed> database_;
  Statement begin_, commit_, rollback_;
  std::map<std::string, Writers, std::less<>> writers_;
};

/// Returns the changes without the rows that already have the requested value in `now`.
Changes without_same(Changes changes, const Contents& now) {
  (void)each_table([&](std::string_view, auto contents, auto changed) -> core::Result<void> {
    const auto& rows = now.*contents;
    std::erase_if(changes.*changed, [&](const auto& change) {
      const auto row = rows.find(change.first);
      return change.second ? row != rows.end() && row->second == *change.second : row == rows.end();
    });
    return {};
  });
  return changes;
}

bool is_empty(const Changes& changes) {
  return changes.pools.empty() && changes.nodes.empty() && changes.tokens.empty() && changes.values.empty();
}

void apply(const Changes& changes, Contents& contents) {
  (void)each_table([&](std::string_view, auto place, auto changed) -> core::Result<void> {
    for (const auto& [name, row] : changes.*changed) {
      if (row) {
        (contents.*place).insert_or_assign(name, *row);
      } else {
        (contents.*place).erase(name);
      }
    }
    return {};
  });
}

class SqliteStore final : public Store {
 public:
  SqliteStore(core::Loop& loop, std::shared_ptr<Database> database, Contents contents)
      : state_(std::make_shared<State>(loop, std::move(database), std::move(contents))) {}
  ~SqliteStore() override { state_->gone = true; }
  SqliteStore(const SqliteStore&) = delete;
  SqliteStore& operator=(const SqliteStore&) = delete;

  [[nodiscard]] const Contents& contents() const override { return state_->contents; }
  [[nodiscard]] std::string problem() const override { return state_->problem; }
  void commit(Change change, Done done) override {
    state_->queue.emplace_back(std::move(change), std::move(done));
    if (!state_->busy) state_->wait_for_turn();
  }
  void listen(std::function<void(const Changes&)> listener) override { state_->listeners.push_back(std::move(listener)); }

 private:
  /// Outlives the store until a running callback has returned, because a callback may destroy the store.
  struct State : std::enable_shared_from_this<State> {
    State(core::Loop& l, std::shared_ptr<Database> d, Contents c)
        : loop(l), database(std::move(d)), contents(std::move(c)), turn(l) {}

    core::Loop& loop;
    std::shared_ptr<Database> database;  ///< Shared with the work under way.
    Contents contents;
    core::Timer turn;
    std::deque<std::pair<Change, Done>> queue;
    std::vector<std::function<void(const Changes&)>> listeners;
    std::string problem;  ///< The error of the last write; "": none.
    bool busy = false;    ///< A commit waits for the next loop iteration or is being written.
    bool gone = false;    ///< The store is destroyed: nothing is called any more.

    void wait_for_turn() {
      busy = true;
      turn.set(core::Duration{0}, [self = weak_from_this()] {
        if (const auto held = self.lock(); held && !held->gone) held->begin();
      });
    }

    void begin() {
      const auto [change, done] = std::move(queue.front());
      queue.pop_front();
      auto wanted = change(contents);
      if (gone) return;
      if (!wanted) return end(done, std::unexpected(std::move(wanted.error())));
      const auto changes = std::make_shared<const Changes>(without_same(*std::move(wanted), contents));
      if (is_empty(*changes)) return end(done, {});
      const auto written = std::make_shared<core::Result<void>>();
      loop.offload([held = database, changes, written] { *written = held->write(*changes); },
                   [self = weak_from_this(), changes, written, call = done] {
                     const auto state = self.lock();
                     if (!state || state->gone) return;
                     state->problem = *written ? "" : written->error().message;
                     if (*written) state->take(*changes);
                     if (!state->gone) state->end(call, std::move(*written));
                   });
    }

    void take(const Changes& changes) {
      apply(changes, contents);
      for (std::size_t i = 0; i < listeners.size() && !gone; ++i) {
        const auto listener = listeners[i];  // A copy, because a listener may add another one.
        listener(changes);
      }
    }

    void end(const Done& done, core::Result<void> result) {
      busy = false;
      if (!queue.empty()) wait_for_turn();
      if (done) done(std::move(result));
    }
  };
  std::shared_ptr<State> state_;
};

}  // namespace

core::Result<std::unique_ptr<Store>> Store::open(core::Loop& loop, const fs::path& file) {
  const auto database = std::make_shared<Database>(file);
  if (auto opened = database->open(); !opened) return std::unexpected(opened.error());
  auto contents = database->load();
  if (!contents) return std::unexpected(contents.error());
  return std::make_unique<SqliteStore>(loop, database, *std::move(contents));
}

}  // namespace enlist
