import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { text } from 'node:stream/consumers'
import { closeLater } from './cleanup.ts'

/**
 * An idle process that measures the lag of its own event loop: what this machine does to anybody just now. The result
 * ends it and gives the lag at p99, in ms.
 */
export async function bystander(): Promise<() => Promise<number>> {
  const source = `
    const lag = require('node:perf_hooks').monitorEventLoopDelay({ resolution: 5 })
    lag.enable()
    process.stdin.resume().on('end', () => console.log(lag.percentile(99) / 1e6))
    console.log('ready')`
  const child = spawn(process.execPath, ['--eval', source], { stdio: ['pipe', 'pipe', 'inherit'] })
  closeLater(() => void child.kill())
  await once(child.stdout, 'data')
  return async () => {
    child.stdin.end()
    return Number(await text(child.stdout))
  }
}
