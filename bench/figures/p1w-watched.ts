import { type IncomingMessage, request } from 'node:http'
import { type Contestant, compete, startPeers } from '../contest/contest.ts'
import { OURS, rowFaults, rowsTable, seriesOf } from '../contest/row.ts'
import type { Figure, Lab } from '../lab.ts'
import type { Generator } from '../load/generator.ts'
import { ratioOf } from '../measure.ts'
import type { Peer } from '../peers/peer.ts'
import { LIFTED, posternPeer } from '../peers/postern.ts'
import { askForToken, startSidecar } from '../sidecar.ts'

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
    const admins = new Map<string, string>()
    const peers = Object.keys(GRANTS).map((name) => sidecarPeer(name, lab, admins))
    const started = await startPeers(lab, peers)
    const points: number[] = []
    const contestants = started.map((contestant): Contestant => {
      const { name } = contestant.peer
      const generator = watching(contestant.generator, admins.get(name) ?? '', points)
      return name === OURS ? contestant : { ...contestant, generator }
    })
    const rows = await compete(lab, contestants)
    const what = 'with the page open, beside a sidecar that nobody watches'
    return {
      checks: [
        ratioOf(
          'P1w CPU',
          `processor time per request ${what}`,
          seriesOf(rows, WATCHED, 'cpuPerRequest'),
          seriesOf(rows, OURS, 'cpuPerRequest'),
          { reach: 1.02 },
        ),
        ratioOf(
          'P1w p99',
          `p99 and a full table of tokens, ${what}`,
          seriesOf(rows, FULL_TABLE, 'p99'),
          seriesOf(rows, OURS, 'p99'),
          { reach: 1.25 },
        ),
      ],
      tables: [rowsTable('With and without a viewer, on one core', rows)],
      faults: [
        ...rowFaults(rows),
        ...(points.every((count) => count > 0) ? [] : ['a viewer got no point during a run']),
      ],
    }
  },
}

function sidecarPeer(name: string, { program }: Lab, admins: Map<string, string>): Peer {
  return {
    ...posternPeer(),
    name,
    async start({ devicePort, core }) {
      const device = `http://127.0.0.1:${devicePort}`
      const { url, admin, child } = await startSidecar({ device, tls: false, set: LIFTED, core, program })
      admins.set(name, admin)
      let token = ''
      for (let i = 0; i < (GRANTS[name] ?? 0); i += 1) token = await askForToken(url)
      return { url, children: [child], headers: { Authorization: `Bearer ${token}` } }
    },
  }
}

/** The same generator, with a viewer of the live page during each run. `points` gets the number of points it received. */
function watching(generator: Generator, admin: string, points: number[]): Generator {
  return {
    ...generator,
    async run(load) {
      const stream = await openStream(admin)
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

function openStream(admin: string): Promise<IncomingMessage> {
  return new Promise((resolve, reject) => {
    const asking = request(`${admin}/page/events`, { agent: false }, (response) => {
      if (response.statusCode === 200) resolve(response)
      else reject(new Error(`the stream of the live page responds with ${response.statusCode}`))
    })
    asking.once('error', reject).end()
  })
}
