import process from 'node:process'
import { openGate } from './gate.ts'

/** `node admission-program.ts MS`: prints what one admission takes (µs), over so many milliseconds. */

const gate = openGate(1_000_000_000)
const { admit } = gate
/** As of a load generator: the fewest fields that a client sends. */
const heads = gate.heads(1_000, (token) => [
  'Host',
  'device.local:8443',
  'Authorization',
  `Bearer ${token}`,
  'User-Agent',
  'bench',
  'Accept',
  '*/*',
])

/** Goes round for so long (ms), and gives the microseconds of processor time of each, the collector's threads included. */
function run(duration: number): number {
  let count = 0
  const before = process.cpuUsage()
  const end = performance.now() + duration
  while (performance.now() < end) {
    for (const head of heads) {
      const admission = admit(head)
      if (admission instanceof Promise) throw new Error('what is known at once was promised')
      if (admission.kind !== 'forward') throw new Error('a valid token was refused')
    }
    count += heads.length
  }
  const { user, system } = process.cpuUsage(before)
  return (user + system) / count
}

const duration = Number(process.argv[2])
run(Math.min(500, duration))
process.stdout.write(String(run(duration)))
