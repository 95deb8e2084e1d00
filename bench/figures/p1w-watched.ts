import { type IncomingMessage, request } from 'node:http'
import { VERSION } from '../../src/version.ts'
import { type Contestant, compete, startPeers, stopPeers } from '../contest/contest.ts'
import { latencyChart, rateChart, rowFaults, rowsTable } from '../contest/row.ts'
import { DEVICE_BODY } from '../device.ts'
import type { Figure } from '../figure.ts'
import type { Lab } from '../lab.ts'
import type { Generator } from '../load/generator.ts'
import { ratioOf } from '../measure.ts'
import type { Peer } from '../peers/peer.ts'
import { NO_LIMIT } from '../peers/postern.ts'
import { askForToken, startSidecar } from '../sidecar.ts'

interface Watched {
  readonly name: string
  readonly grants: number
  readonly isWatched: boolean
}

/** Logins that the page lists: as many as it shows. */
const SHOWN = 1_000
/** Logins of a full table: each has two of the tokens of `tokens.capacity`. */
const FULL = 5_000

const UNWATCHED = 'postern'
const WATCHED = 'postern, page open'
const FULL_TABLE = 'postern, page open, table full'

const SIDECARS: readonly Watched[] = [
  { name: UNWATCHED, grants: SHOWN, isWatched: false },
  { name: WATCHED, grants: SHOWN, isWatched: true },
  { name: FULL_TABLE, grants: FULL, isWatched: true },
]

export const watched: Figure = {
  id: 'P1w',
  title: 'The live page costs the requests nothing',
  about: `P1 with three sidecars: two with ${SHOWN} grants and one with ${FULL}, which fill its table. While the second or third is loaded, a viewer reads the stream of its live page. A pause of the event loop appears in p99.`,
  async measure(lab) {
    const admins = new Map<string, string>()
    const started = await startPeers(
      lab,
      SIDECARS.map((sidecar) => sidecarPeer(sidecar, lab, admins)),
      lab.device.port,
    )
    const points: number[] = []
    const contestants = started.map((contestant): Contestant => {
      const admin = admins.get(contestant.peer.name)
      const isWatched = SIDECARS.some(({ name, isWatched: is }) => is && name === contestant.peer.name)
      return isWatched && admin !== undefined
        ? { ...contestant, generator: watching(contestant.generator, admin, points) }
        : contestant
    })
    const rows = await compete(lab, contestants, { status: 200, body: DEVICE_BODY })
    await stopPeers(started)
    const valuesOf = (measure: 'cpuPerRequest' | 'p99', of: string): (number | undefined)[] =>
      rows.find(({ name }) => name === of)?.samples.map((sample) => sample[measure]) ?? []
    return {
      checks: [
        ratioOf(valuesOf('cpuPerRequest', WATCHED), valuesOf('cpuPerRequest', UNWATCHED), {
          id: 'P1w CPU',
          what: 'processor time per request with the page open, beside a sidecar that nobody watches',
          better: 'less',
          reach: 1.02,
        }),
        ratioOf(valuesOf('p99', FULL_TABLE), valuesOf('p99', UNWATCHED), {
          id: 'P1w p99',
          what: 'p99 with the page open and a full table of tokens, beside a sidecar that nobody watches',
          better: 'less',
          reach: 1.25,
        }),
      ],
      charts: [
        rateChart('Requests forwarded per second', rows),
        latencyChart('Latency with and without a viewer', rows),
      ],
      tables: [rowsTable('With and without a viewer, on one core', rows)],
      notes: [],
      faults: [
        ...rowFaults(rows),
        ...(points.every((count) => count > 0) ? [] : ['a viewer got no point during a run']),
      ],
    }
  },
}

function sidecarPeer({ name, grants }: Watched, { program }: Lab, admins: Map<string, string>): Peer {
  return {
    name,
    does: 'token, window, header policy, metrics, log',
    fast: false,
    version: async () => VERSION,
    async start({ devicePort, core }) {
      const set = [`limits.api.requests=${NO_LIMIT}`, `limits.oauth.requests=${NO_LIMIT}`]
      const device = `http://127.0.0.1:${devicePort}`
      const { url, admin, child } = await startSidecar({ device, tls: false, set, core, program })
      admins.set(name, admin)
      let token = ''
      for (let i = 0; i < grants; i += 1) token = await askForToken(url)
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
