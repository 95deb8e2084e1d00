import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { text } from 'node:stream/consumers'
import { closeLater } from './cleanup.ts'

/**
 * Starts an idle process that measures the lag of its own event loop: the lag that the load of this machine causes in any
 * process. The returned function ends the process and resolves with its lag at p99 (ms).
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
