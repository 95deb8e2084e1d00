import { once } from 'node:events'
import { get } from 'node:http'
import { type Contestant, compete, startPeers } from '../contest/contest.ts'
import { besideCheck, OURS, rowFaults, rowsTable } from '../contest/row.ts'
import type { Figure, Lab } from '../lab.ts'
import type { Generator } from '../load/generator.ts'
import type { Peer } from '../peers/peer.ts'
import { posternPeer } from '../peers/postern.ts'
import { askForToken } from '../sidecar.ts'

/** Logins that the page lists: as many as it shows. */
const SHOWN = 1_000
/** Logins of a full table: each has two of the tokens of `tokens.capacity`. */
const FULL = 5_000

const WATCHED = 'postern, page open'
const FULL_TABLE = 'postern, page open, table full'

/** The logins of each sidecar. Somebody watches all but the first. */
const GRANTS: Readonly<Record<string, number>> = { [OURS]: SHOWN, [WATCHED]: SHOWN, [FULL_TABLE]: FULL }

export const watched: Figure = {
  id: 'P1w',
  title: 'The live page costs the requests nothing',
  about: `P1 with three sidecars: two with ${SHOWN} grants and one with ${FULL}, which fill its table. While the second or third is loaded, a viewer reads the stream of its live page. A pause of the event loop appears in p99.`,
  async measure(lab) {
    const started = await startPeers(lab, Object.entries(GRANTS).map(sidecarPeer(lab)))
    const points: number[] = []
    const contestants = started.map((contestant): Contestant => {
      const { peer, generator, running } = contestant
      if (peer.name === OURS) return contestant
      return { ...contestant, generator: watching(generator, running.admin ?? '', points) }
    })
    const rows = await compete(lab, contestants)
    const what = 'with the page open, beside a sidecar that nobody watches'
    const cost = `processor time per request ${what}`
    const pause = `p99 and a full table of tokens, ${what}`
    return {
      checks: [
        besideCheck(rows, [WATCHED, OURS], { id: 'P1w CPU', what: cost, reach: 1.02 }),
        besideCheck(rows, [FULL_TABLE, OURS], { id: 'P1w p99', what: pause, reach: 1.25 }, 'p99'),
      ],
      tables: [rowsTable('With and without a viewer, on one core', rows)],
      faults: [
        ...rowFaults(rows),
        ...(points.every((count) => count > 0) ? [] : ['a viewer got no point during a run']),
      ],
    }
  },
}

/** Postern with so many logins, the one of the load among them. */
function sidecarPeer({ program }: Lab): (named: readonly [name: string, grants: number]) => Peer {
  const peer = posternPeer({ program })
  return ([name, grants]) => ({
    ...peer,
    name,
    async start(place) {
      const running = await peer.start(place)
      for (let i = 1; i < grants; i += 1) await askForToken(running.url)
      return running
    },
  })
}

/** The same generator, with a viewer of the live page during each run. `points` gets the number of points it received. */
function watching(generator: Generator, admin: string, points: number[]): Generator {
  return {
    ...generator,
    async run(load) {
      const [stream] = await once(get(`${admin}/page/events`, { agent: false }), 'response')
      let count = 0
      stream.setEncoding('utf8').on('data', (text: string) => {
        count += text.split('event: point\n').length - 1
      })
      try {
        return await generator.run(load)
      } finally {
        stream.destroy()
        points.push(count)
      }
    },
  }
}
