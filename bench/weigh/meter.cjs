// Loaded into the sidecar by `npm run weigh`: at SIGUSR2 it writes how many bytes V8 has allocated so far into the file METER.
const { renameSync, writeFileSync } = require('node:fs')
const { env } = require('node:process')
const { getHeapStatistics } = require('node:v8')

process.on('SIGUSR2', () => {
  writeFileSync(`${env.METER}.part`, String(getHeapStatistics().total_allocated_bytes))
  renameSync(`${env.METER}.part`, env.METER)
})
