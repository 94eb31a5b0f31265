// Short replies of slurmrestd for unit tests.
#pragma once

#include <string>
#include <vector>

#include "net/http.hpp"
#include "slurm/testing/fake_transport.hpp"

namespace slurm::testing {

inline net::HttpResponse ok(std::string body) {
  return {200, {}, std::move(body)};
}

inline std::string meta(const std::string& release = "26.05.5") {
  return R"("warnings":[],"meta":{"slurm":{"release":")" + release + R"("}})";
}

inline net::HttpResponse done() {
  return ok(R"({"errors":[],)" + meta() + "}");
}

inline net::HttpResponse error(int status, long number, const std::string& description) {
  return {status,
          {},
          R"({"errors":[{"description":")" + description + R"(","error_number":)" + std::to_string(number) +
              R"(,"error":"text"}],)" + meta() + "}"};
}

inline std::string node(const std::string& name, const std::string& states, const std::string& reason = "") {
  return R"({"name":")" + name + R"(","state":[)" + states + R"(],"reason":")" + reason + R"("})";
}

inline net::HttpResponse nodes(const std::string& rows, long last_update = 100, const std::string& release = "26.05.5") {
  return ok(R"({"nodes":[)" + rows + R"(],"last_update":{"set":true,"infinite":false,"number":)" + std::to_string(last_update) +
            R"(},"errors":[],)" + meta(release) + "}");
}

inline net::HttpResponse jobs(const std::string& rows, long last_update = 100) {
  return ok(R"({"jobs":[)" + rows + R"(],"last_update":{"set":true,"infinite":false,"number":)" + std::to_string(last_update) +
            R"(},"errors":[],)" + meta() + "}");
}

inline net::HttpResponse no_job_changes() {
  return ok(
      R"({"jobs":[],"last_update":{"set":true,"infinite":false,"number":0},"errors":[],)"
      R"("warnings":[{"description":"No job changes since update_time[100]=x"}],"meta":{"slurm":{"release":"26.05.5"}}})");
}

inline net::HttpResponse partitions(const std::string& rows, long last_update = 100) {
  return ok(R"({"partitions":[)" + rows + R"(],"last_update":{"set":true,"infinite":false,"number":)" +
            std::to_string(last_update) + R"(},"errors":[],)" + meta() + "}");
}

inline net::HttpResponse ping(bool up) {
  const std::string word = up ? "true" : "false";
  return ok(R"({"pings":[{"hostname":"c","responding":)" + word + R"(,"primary":true}],"errors":[],)" + meta() + "}");
}

inline net::HttpResponse openapi(const std::string& parser = "v0.0.45", const std::string& release = "26.05.5") {
  const std::string base = R"("/slurm/)" + parser;
  return ok(R"({"info":{"version":"Slurm-)" + release + R"("},"paths":{"/slurmdb/)" + parser + R"(/qos/":{"get":{}},)" + base +
            R"(/nodes/":{"get":{},"post":{}},)" + base + R"(/jobs/requeue":{"post":{}},)" + base +
            R"(/jobs/state/":{"get":{}},)" + base + R"(/conf":{"get":{}}}})");
}

/// Makes `http` answer with one idle node n1, no jobs, and the partition all.
inline void serve_quiet_cluster(FakeTransport& http, const std::string& base = "/slurm/v0.0.45") {
  http.on("GET", "/openapi/v3", openapi());
  http.on("GET", base + "/ping/", ping(true));
  http.on("GET", base + "/nodes/", nodes(node("n1", R"("IDLE")")));
  http.on("GET", base + "/nodes/?update_time=", net::HttpResponse{304, {}, ""});
  http.on("GET", base + "/jobs/", jobs(""));
  http.on("GET", base + "/jobs/?update_time=", no_job_changes());
  http.on("GET", base + "/partitions/", partitions(R"({"name":"all","partition":{"state":["UP"]}})"));
  http.on("GET", base + "/partitions/?update_time=", net::HttpResponse{304, {}, ""});
}

}  // namespace slurm::testing
