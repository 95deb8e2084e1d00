-- Prints the result as JSON. Does not inspect responses during the load, which would slow wrk down.
done = function(summary, latency, requests)
  local e = summary.errors
  io.write(string.format(
    '\n{"requests":%d,"microseconds":%d,"bytes":%d,"p50":%f,"p90":%f,"p99":%f,"refused":%d,"errors":%d}\n',
    summary.requests, summary.duration, summary.bytes,
    latency:percentile(50) / 1000, latency:percentile(90) / 1000, latency:percentile(99) / 1000,
    e.status, e.connect + e.read + e.write + e.timeout))
end
