import process from 'node:process'
import { createGate } from '../../src/gate/admit.ts'
import { createClientAddress } from '../../src/gate/client-address.ts'
import type { RequestHead } from '../../src/http/exchange.ts'
import { systemClock } from '../../src/http/system-clock.ts'
import { createWindowTable } from '../../src/limits/window-table.ts'
import { openTokenStore } from '../token-store.ts'

/** `node admission-program.ts MS`: prints what one admission takes (µs), over so many milliseconds. */

const limit = { requests: 1_000_000_000, window: 60_000, per: 'client' } as const
const tables = {
  api: createWindowTable(limit, { clock: systemClock, maxKeys: 100_000 }),
  oauth: createWindowTable(limit, { clock: systemClock, maxKeys: 100_000 }),
}
const tokens = openTokenStore(10_000)
const settings = {
  limits: { api: limit, oauth: limit },
  ietfHeaders: false,
  isPublic: () => false,
  enforce: true,
  revocationPath: undefined,
  headerCaps: { maxHeaderSize: 16 * 1024, maxHeaderCount: 100 },
}
const admit = createGate({
  clock: systemClock,
  tables,
  clientOf: createClientAddress([]).clientOf,
  identify: tokens.identify,
  settings: () => settings,
})

/** As a load generator's request: the fewest fields that a client sends. */
function headOf(token: string): RequestHead {
  return {
    version: '1.1',
    secure: true,
    method: 'GET',
    target: '/api/status?verbose=1',
    authority: undefined,
    fields: [
      'Host',
      'device.local:8443',
      'Authorization',
      `Bearer ${token}`,
      'User-Agent',
      'bench',
      'Accept',
      '*/*',
    ],
    peer: '192.0.2.7',
    localPort: 8443,
    upgrade: false,
    endsWithHead: false,
  }
}

/** A client of each token; they take turns, so that nothing is found where it was found last. */
const heads = Array.from({ length: 1_000 }, () => headOf(tokens.issue('192.0.2.7').accessToken))

/** Goes round for so long (ms), and gives the microseconds of processor time of each, the collector's threads included. */
function run(duration: number): number {
  let count = 0
  const before = process.cpuUsage()
  const end = performance.now() + duration
  while (performance.now() < end) {
    for (const head of heads) {
      if (admit(head).kind !== 'forward') throw new Error('a valid token was refused')
    }
    count += heads.length
  }
  const { user, system } = process.cpuUsage(before)
  return (user + system) / count
}

const duration = Number(process.argv[2])
run(Math.min(500, duration))
process.stdout.write(String(run(duration)))
