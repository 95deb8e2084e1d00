import {
  CONNECTIONS,
  competeInTurn,
  installed,
  type Loading,
  loadingsOf,
  startPeers,
} from '../contest/contest.ts'
import { heldText, hold } from '../contest/hold.ts'
import {
  busyNotes,
  costCheck,
  OURS,
  type Row,
  ratioCheck,
  rowFaults,
  rowsTable,
  seriesOf,
} from '../contest/row.ts'
import type { Check, Table } from '../figure.ts'
import { fixed } from '../format.ts'
import type { Figure, Lab } from '../lab.ts'
import { HTTP2_CONNECTIONS, STREAMS } from '../load/h2load.ts'
import { medianOf } from '../measure.ts'
import { type CertificatePaths, makeCertificate } from '../peers/certificate.ts'
import { fastifyJob } from '../peers/fastify-job.ts'
import { haproxyPeer } from '../peers/haproxy.ts'
import { haproxyLoginsJob, haproxyLuaJob } from '../peers/haproxy-job/haproxy-job.ts'
import { type Job, loadedPeer } from '../peers/job.ts'
import { nginxPeer, nginxTlsPeer } from '../peers/nginx.ts'
import { nginxJob } from '../peers/nginx-job.ts'
import { posternJob } from '../peers/postern.ts'
import { cleaningUp, say } from '../run-program.ts'

/** The programs that do the whole job, each with the bare proxy that is its limit. */
const OTHERS: readonly { readonly job: Job; readonly bare?: string }[] = [
  { job: haproxyLuaJob, bare: 'haproxy' },
  { job: haproxyLoginsJob, bare: 'haproxy' },
  { job: nginxJob, bare: 'nginx' },
  { job: fastifyJob },
]

/** In the order in which they are measured. */
export const PROTOCOLS = ['HTTP/1.1', 'TLS', 'HTTP/2'] as const

type Protocol = (typeof PROTOCOLS)[number]
/** The names of the programs that do the whole job. */
export const JOBS: readonly string[] = [OURS, ...OTHERS.map(({ job }) => job.name)]

/** The check of the processor time of a program over a protocol. */
export function costId(name: string, protocol: Protocol): string {
  return name === OURS && protocol === 'HTTP/1.1' ? 'P1 CPU' : `P1 CPU ${name}, ${protocol}`
}

type Rows = Readonly<Record<Protocol, readonly Row[]>>

export const forwarding: Figure = {
  id: 'P1',
  title: 'The whole job: processor time of a forwarded request',
  about: `Requests for 27 bytes of JSON: over HTTP/1.1, in cleartext and over TLS, with ${CONNECTIONS} keep-alive connections, over HTTP/2 with ${HTTP2_CONNECTIONS} connections of ${STREAMS} streams each. Each program takes logins, checks the token, counts the window and writes a line of log; only its limits are lifted. \`postern verify\` has judged each of them before. A bare proxy forwards, without logins and log: HAProxy with a file of tokens, nginx without any.`,
  async measure(lab) {
    const jobs = [posternJob(lab.program), ...OTHERS.map(({ job }) => job)]
    const pair = await makeCertificate()
    const held = await holdAll(lab, jobs, pair)
    const rows = await measureAll(lab, jobs, pair)
    const all = PROTOCOLS.map((protocol) => rows[protocol])
    return {
      checks: [...beside(rows), ...PROTOCOLS.flatMap((protocol) => costs(rows[protocol], protocol))],
      tables: [
        summary(rows, held),
        ...PROTOCOLS.map((protocol) => rowsTable(`${protocol}, every program on one core`, rows[protocol])),
      ],
      notes: all.flatMap(busyNotes),
      faults: all.flatMap(rowFaults),
    }
  },
}

/** What `postern verify` says of each job that is measured. */
async function holdAll(
  lab: Lab,
  jobs: readonly Job[],
  pair: CertificatePaths,
): Promise<ReadonlyMap<string, string>> {
  const held = new Map<string, string>()
  for (const job of jobs) {
    if ((await installed(lab, job)) === undefined) continue
    const place = { devicePort: lab.device.port, core: lab.proxyCore }
    held.set(job.name, heldText(await hold(job, place, pair, { quick: lab.part < 1 })))
    say(`  postern verify of ${job.name}: ${held.get(job.name)}`)
  }
  return held
}

/** Measures all programs over each protocol. Those over TLS take HTTP/2, too. */
async function measureAll(lab: Lab, jobs: readonly Job[], pair: CertificatePaths): Promise<Rows> {
  const { http1, http2 } = loadingsOf(lab)
  const contest = async (tls: CertificatePaths | undefined, loads: readonly Loading[]): Promise<Row[][]> => {
    const bare = [haproxyPeer(tls), tls === undefined ? nginxPeer : nginxTlsPeer(tls)]
    const peers = [...jobs.map((job) => loadedPeer(job, tls)), ...bare]
    return competeInTurn(lab, await startPeers(lab, peers), loads)
  }
  const [cleartext = []] = await cleaningUp(() => contest(undefined, [http1]))
  const [encrypted = [], multiplexed = []] = await cleaningUp(() => contest(pair, [http1, http2]))
  return { 'HTTP/1.1': cleartext, TLS: encrypted, 'HTTP/2': multiplexed }
}

/** Postern beside the others, by processor time, which is the rate that one core allows. */
function beside(rows: Rows): readonly Check[] {
  const by = 'CPU'
  const http1 = rows['HTTP/1.1']
  const whole = (peer: string, what: string, bounds: Pick<Check, 'reach' | 'aim'>): Check =>
    ratioCheck(http1, peer, { id: `P1 ${peer}`, what: `of ${what}, by processor time`, by, ...bounds })
  const lua = (protocol: Protocol, id: string, aim: number): Check =>
    ratioCheck(rows[protocol], haproxyLuaJob.name, {
      id,
      what: `of HAProxy with the whole job in Lua, by processor time, ${protocol}`,
      by,
      aim,
    })
  return [
    lua('HTTP/1.1', 'P1 haproxy Lua CPU', 1.8),
    lua('TLS', 'P1 haproxy Lua CPU TLS', 1.6),
    lua('HTTP/2', 'P1 haproxy Lua CPU HTTP/2', 1.2),
    whole('fastify', 'Fastify with its plugins', { reach: 2.8 }),
    whole('nginx auth_request', 'nginx with auth_request to a token service', { reach: 1.3 }),
    ratioCheck(http1, 'haproxy', {
      id: 'P1 haproxy CPU',
      what: 'of HAProxy with a file of tokens, by processor time',
      by,
      reach: 0.65,
      aim: 0.75,
    }),
    ratioCheck(http1, 'nginx', { id: 'P1 nginx', what: 'of the rate of bare nginx' }),
  ]
}

/** Processor time of each job over a protocol. */
function costs(rows: readonly Row[], protocol: Protocol): readonly Check[] {
  return JOBS.map((name) => {
    const what = `processor time of a request through ${name}, ${protocol}`
    return costCheck(rows, costId(name, protocol), what, name)
  })
}

/** Each job with its bare proxy, and what `postern verify` says of it. */
function summary(rows: Rows, held: ReadonlyMap<string, string>): Table {
  const cost = (of: readonly Row[], name = ''): string =>
    fixed(medianOf(seriesOf(of, name, 'cpuPerRequest')), 1)
  const programs = [
    { name: OURS, bare: undefined },
    ...OTHERS.map(({ job: { name }, bare }) => ({ name, bare })),
  ]
  return {
    caption: 'Processor time of a request, µs',
    head: ['program', 'protocol', 'the whole job', 'the bare proxy', 'postern verify'],
    rows: PROTOCOLS.flatMap((protocol) =>
      programs
        .filter(({ name }) => held.has(name))
        .map(({ name, bare }) => [
          name,
          protocol,
          cost(rows[protocol], name),
          cost(rows[protocol], bare),
          held.get(name) ?? '',
        ]),
    ),
  }
}
