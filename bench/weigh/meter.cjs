// Loaded into a sidecar by `npm run weigh`. SIGUSR2 makes it write into the file METER how many bytes V8 has allocated so far; with
// METER_CALLS, every second signal writes how often each function was called since the one before.
const { renameSync, writeFileSync } = require('node:fs')
const { Session } = require('node:inspector')
const { env } = require('node:process')
const { getHeapStatistics } = require('node:v8')

const session = new Session()
let counts = false

function write(value) {
  writeFileSync(`${env.METER}.part`, JSON.stringify(value))
  renameSync(`${env.METER}.part`, env.METER)
}

function countCalls() {
  if (!counts) session.connect()
  if (!counts) session.post('Profiler.enable')
  if (!counts) session.post('Profiler.startPreciseCoverage', { callCount: true, detailed: false })
  session.post('Profiler.takePreciseCoverage', (_error, { result }) => write(result))
  if (counts) session.disconnect()
  counts = !counts
}

process.on('SIGUSR2', () => {
  if (env.METER_CALLS) countCalls()
  else write(getHeapStatistics().total_allocated_bytes)
})
