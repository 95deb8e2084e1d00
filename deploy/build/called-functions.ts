import { Session } from 'node:inspector'
import process from 'node:process'
import { setTimeout as pass } from 'node:timers/promises'

// `compiled-code.ts` loads this file into a sidecar of the bundle. At SIGUSR2 it logs which functions were called so far, as `called`.

/** Timers up to this time (ms) fire. On a slow machine more of the longer ones would fire, and more functions would be called. */
const LONGEST = 50

/** The longest time of a timer (ms): 24 days. */
const NEVER = 2 ** 31 - 1

for (const name of ['setTimeout', 'setInterval'] as const) {
  const set = globalThis[name]
  const replacement = (callback: () => void, time = 0, ...args: []): NodeJS.Timeout =>
    set(callback, time > LONGEST ? NEVER : time, ...args)
  Object.assign(globalThis, { [name]: replacement })
}

// The clock stands still. How long a start, a request or a turn of the event loop takes would decide what is called.
const now = performance.now()
performance.now = () => now

// No observer hears of a collection: V8 runs one sooner or later by luck.
PerformanceObserver.prototype.observe = () => {}

const session = new Session()
session.connect()
session.post('Profiler.enable')
session.post('Profiler.startPreciseCoverage', { callCount: true, detailed: false })

/** Resolves when every short timer has fired and no request to the system is under way, such as reading a file. */
async function settled(): Promise<void> {
  do await pass(2 * LONGEST)
  while (process.getActiveResourcesInfo().some((name) => name.includes('Req')))
}

process.once('SIGUSR2', async () => {
  await settled()
  session.post('Profiler.takePreciseCoverage', (error, coverage) => {
    if (error !== null) throw error
    const called = coverage.result
      .filter(({ url }) => /^[^/:]+\.cjs$/.test(url))
      .map(({ url, functions }) => [
        url,
        functions.flatMap(({ ranges: [whole] }) => (whole && whole.count > 0 ? [whole.startOffset] : [])),
      ])
    process.stdout.write(`${JSON.stringify({ called: Object.fromEntries(called) })}\n`)
  })
})
