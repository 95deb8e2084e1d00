import { setTimeout as delay } from 'node:timers/promises'
import fc from 'fast-check'
import type { Case } from '../case.ts'
import type { Seen, WitnessDevice } from '../device.ts'
import { inPieces } from '../mutation.ts'
import type { NginxDevice } from '../nginx.ts'
import { devicesAnswers, playRequests } from '../requests.ts'
import { CLEARTEXT, ENCRYPTED, type Scene, type Target } from '../target.ts'
import { connection } from './heads.ts'

/** Plays a case through the sidecar to one device: what that device saw, and what was wrong. */
async function through(
  scene: Scene<WitnessDevice>,
  item: Case,
  claim: NginxDevice['claim'],
): Promise<{ seen: readonly Seen[]; answers: number; faults: string[] }> {
  const played = await playRequests(scene, item)
  const answered = devicesAnswers(played)
  // A request whose body breaks has been begun at the device, and its answer is not the device's.
  const broken = played.answers.some(({ status }) => status === 400) || played.fault !== undefined ? 1 : 0
  // A log line is written when the answer has gone out already.
  const sent = item.writes.join('')
  const claims: Seen[] = []
  const look = (): readonly Seen[] => scene.device.seenFrom(played.client)
  let seen = look()
  for (let tries = 0; seen.length < answered && tries < 50; tries++) {
    const claimed = claim(answered - seen.length, sent)
    if (claimed.length > 0) claims.push(...claimed)
    else await delay(10)
    seen = [...look(), ...claims]
  }
  const right = seen.length >= answered && (played.broken || seen.length <= answered + broken)
  return {
    seen,
    answers: played.answers.length,
    faults: right ? [...played.faults] : [...played.faults, `${seen.length} seen, ${answered} answered`],
  }
}

/** As a set: requests of one connection may be under way side by side. */
const tally = (seen: readonly Seen[]): string[] =>
  seen.map(({ method, target }) => `${method} ${target}`).sort()

/** Sends the same requests through the sidecar to nginx and to Node: each sees exactly what was admitted, and the same. */
export const differential: Target = {
  name: 'differential',
  settings: [CLEARTEXT, ENCRYPTED],
  cases: fc.record({ writes: inPieces(connection), ending: fc.constant('end' as const) }),
  async open(scenes) {
    const [node, nginx] = await Promise.all([scenes.scripted(), scenes.nginx()])
    return async (item) => {
      const [one, other] = await Promise.all([
        through(node, item, () => []),
        through(nginx, item, (count) => nginx.device.claim(count, item.writes.join(''))),
      ])
      const faults = [
        ...one.faults.map((fault) => `Node: ${fault}`),
        ...other.faults.map((fault) => `nginx: ${fault}`),
      ]
      // A deadline that passes on one side only is the machine's affair, and so is whether a request whose body breaks has
      // reached the device by then.
      const alike =
        faults.length === 0 && one.answers === other.answers && one.seen.length === other.seen.length
      if (alike && tally(one.seen).join('\n') !== tally(other.seen).join('\n')) {
        faults.push(`Node saw ${JSON.stringify(tally(one.seen))}, nginx ${JSON.stringify(tally(other.seen))}`)
      }
      return faults
    }
  },
}
