import { setTimeout as delay } from 'node:timers/promises'
import fc from 'fast-check'
import { PATIENCE } from '../../support/running-test.ts'
import type { Case } from '../case.ts'
import type { Seen, WitnessDevice } from '../device.ts'
import { inPieces } from '../mutation.ts'
import type { NginxDevice } from '../nginx.ts'
import { deviceResponses, playRequests } from '../requests.ts'
import { CLEARTEXT, ENCRYPTED, type Scene, type Target } from '../target.ts'
import { connection } from './heads.ts'

/** Plays a case through the sidecar to one device. Resolves with the requests at that device and the faults. */
async function playThrough(
  scene: Scene<WitnessDevice>,
  item: Case,
  claim: NginxDevice['claim'],
): Promise<{ seen: readonly Seen[]; responses: number; faults: string[] }> {
  const played = await playRequests(scene, item)
  const answered = deviceResponses(played)
  // A request with a broken body may have reached the device, but its response is from the sidecar.
  const broken = played.responses.some(({ status }) => status === 400) || played.fault !== undefined ? 1 : 0
  // nginx writes a log line after the response.
  const sent = item.writes.join('')
  const claims: Seen[] = []
  const requestsSeen = (): readonly Seen[] => scene.device.seenFrom(played.client)
  let seen = requestsSeen()
  for (const end = performance.now() + PATIENCE; seen.length < answered && performance.now() < end; ) {
    const claimed = claim(answered - seen.length, sent)
    if (claimed.length > 0) claims.push(...claimed)
    else await delay(10)
    seen = [...requestsSeen(), ...claims]
  }
  const consistent = seen.length >= answered && (played.broken || seen.length <= answered + broken)
  return {
    seen,
    responses: played.responses.length,
    faults: consistent
      ? [...played.faults]
      : [...played.faults, `the device saw ${seen.length} requests and sent ${answered} responses`],
  }
}

/** Sorted: requests of one connection may be in flight at the same time. */
const sorted = (seen: readonly Seen[]): string[] =>
  seen.map(({ method, target }) => `${method} ${target}`).sort()

/** Sends the same requests through sidecars to nginx and to Node: both see exactly the admitted requests, and the same. */
export const differential: Target = {
  name: 'differential',
  settings: [CLEARTEXT, ENCRYPTED],
  cases: fc.record({ writes: inPieces(connection), ending: fc.constant('end' as const) }),
  async open(scenes) {
    const [node, nginx] = await Promise.all([scenes.scripted(), scenes.nginx()])
    return async (item) => {
      const [one, other] = await Promise.all([
        playThrough(node, item, () => []),
        playThrough(nginx, item, (count) => nginx.device.claim(count, item.writes.join(''))),
      ])
      const faults = [
        ...one.faults.map((fault) => `Node: ${fault}`),
        ...other.faults.map((fault) => `nginx: ${fault}`),
      ]
      // Not compared after a fault or with different counts: timing decides whether a deadline passes on one side only, and
      // whether a request with a broken body reaches the device.
      const comparable =
        faults.length === 0 && one.responses === other.responses && one.seen.length === other.seen.length
      if (comparable && sorted(one.seen).join('\n') !== sorted(other.seen).join('\n')) {
        faults.push(
          `Node saw ${JSON.stringify(sorted(one.seen))}, nginx ${JSON.stringify(sorted(other.seen))}`,
        )
      }
      return faults
    }
  },
}
