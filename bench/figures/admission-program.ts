import process from 'node:process'
import { openGate } from './gate.ts'

/** `node admission-program.ts MS`: measures for MS milliseconds and prints the processor time of one admission (µs). */

const gate = openGate(1_000_000_000)
const { admit } = gate
/** The fields that a load generator sends. */
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

/** Loops for `duration` ms. Returns the processor time per admission (µs), including the threads of the garbage collector. */
function run(duration: number): number {
  let count = 0
  const before = process.cpuUsage()
  const end = performance.now() + duration
  while (performance.now() < end) {
    for (const head of heads) {
      const admission = admit(head)
      if (admission instanceof Promise) throw new Error('admission was asynchronous')
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
