import { type Contestant, startPeers } from '../contest/contest.ts'
import { busyNote, OURS } from '../contest/row.ts'
import { startNodeDevice } from '../device.ts'
import { fixed, percent } from '../format.ts'
import type { Figure, Lab } from '../lab.ts'
import { type Transfer, transfer } from '../load/transfer.ts'
import { alternate, checkOf, medianOf, ratioOf } from '../measure.ts'
import { makeCertificate } from '../peers/certificate.ts'
import { nginxStreamPeer, nginxTlsStreamPeer } from '../peers/nginx.ts'
import { tlsRelayPeer } from '../peers/node-peers.ts'
import { posternPeer } from '../peers/postern.ts'
import { residentMemory, watchMemory, whileBusy } from '../process-usage.ts'
import { say } from '../run-program.ts'

const [MEBIBYTE, GIBIBYTE] = [2 ** 20, 2 ** 30] as const

const DIRECTIONS = ['up', 'down'] as const
const NODE = 'node:tls'

/**
 * The ratios, each with its threshold. Node hands an upload over TLS to a program in pieces of 16 KiB: there a relay of Node is the measure.
 */
const PAIRS = [
  { id: 'P9 up', of: OURS, beside: 'nginx', way: 'cleartext, up', reach: 0.85 },
  { id: 'P9 down', of: OURS, beside: 'nginx', way: 'cleartext, down', reach: 0.95 },
  { id: 'P9 TLS up', of: OURS, beside: NODE, way: 'TLS, up', reach: 0.85 },
  { id: 'P9 TLS down', of: OURS, beside: 'nginx', way: 'TLS, down', reach: 0.95 },
  { id: 'P9 TLS up, nginx', of: OURS, beside: 'nginx', way: 'TLS, up' },
  { id: 'P9 node:tls, nginx', of: NODE, beside: 'nginx', way: 'TLS, up' },
] as const

/** The transfer of one large body through one proxy. */
interface Measured {
  /** MiB per second. */
  readonly rate: number
  /** Fraction of its core that the proxy used. */
  readonly busy: number
  /** Peak memory of the proxy minus its memory before the transfer (MiB). */
  readonly grown: number
  readonly faults: readonly string[]
}

interface Way {
  readonly name: string
  readonly proxy: Contestant
  readonly direction: Transfer['direction']
}

const waysOver = (transport: 'cleartext' | 'TLS', proxies: readonly Contestant[]): Way[] =>
  proxies.flatMap((proxy) =>
    DIRECTIONS.map((direction): Way => {
      return { name: `${proxy.peer.name}, ${transport}, ${direction}`, proxy, direction }
    }),
  )

export const bulk: Figure = {
  id: 'P9',
  title: 'One large body',
  about:
    '1 GiB up and 1 GiB down, in cleartext and over TLS (HTTP/1.1), beside nginx without temporary files and, over TLS, beside thirty lines of node:tls and node:net that relay bytes unread. The device counts the bytes of an upload, the client those of a download.',
  async measure(lab) {
    const bytes = Math.round(GIBIBYTE * Math.max(lab.part, 1 / 8))
    const device = await startNodeDevice(lab.otherCore)
    const { program } = lab
    const plain = [posternPeer({ program }), nginxStreamPeer]
    const pair = await makeCertificate()
    const secure = [
      posternPeer({ program, tls: true }),
      nginxTlsStreamPeer(pair),
      tlsRelayPeer(pair, program),
    ]
    const ways = [
      ...waysOver('cleartext', await startPeers(lab, plain, device.port)),
      ...waysOver('TLS', await startPeers(lab, secure, device.port)),
    ]
    const rounds = await alternate(ways, lab.rounds, async (way, round) => {
      const one = await measureTransfer(way, bytes, lab)
      say(`  round ${round + 1}: ${way.name}: ${one.rate.toFixed(0)} MiB/s`)
      return one
    })
    const measured = [...rounds]
    const rates = (name: string): number[] =>
      measured.filter(([way]) => way.name === name).flatMap(([, of]) => of.map(({ rate }) => rate))
    const most = (of: readonly Measured[]): number => Math.max(...of.map(({ grown }) => grown))
    const ours = measured.filter(([{ proxy }]) => proxy.peer.name === OURS).flatMap(([, of]) => of)
    const grown = 'largest growth of memory during a transfer'
    return {
      checks: [
        ...PAIRS.map(({ id, of, beside, way, ...more }) =>
          ratioOf(
            id,
            `${of}, of the rate of ${beside}, ${way}`,
            rates(`${of}, ${way}`),
            rates(`${beside}, ${way}`),
            { better: 'more', ...more },
          ),
        ),
        checkOf('P9 memory', grown, 'MiB', ours.length > 0 ? most(ours) : undefined, { reach: 20 }),
      ],
      tables: [
        {
          caption: 'Large bodies',
          head: ['proxy', 'MiB/s', 'busy', 'CPU ms/MiB', 'memory grew by, MiB'],
          rows: measured.map(([{ name }, of]) => [
            name,
            fixed(medianOf(of.map((one) => one.rate)), 0),
            percent(medianOf(of.map((one) => one.busy))),
            fixed(medianOf(of.map(({ busy, rate }) => (1000 * busy) / rate)), 2),
            fixed(most(of), 1),
          ]),
        },
      ],
      notes: [
        ...measured.flatMap(([{ name }, of]) => busyNote(name, medianOf(of.map((one) => one.busy)))),
        ...(bytes < GIBIBYTE ? [`${bytes / MEBIBYTE} MiB, not 1 GiB: this was a quick run`] : []),
      ],
      faults: measured.flatMap(([{ name }, of]) =>
        of.flatMap(({ faults }) => faults.map((fault) => `${name}: ${fault}`)),
      ),
    }
  },
}

async function measureTransfer({ proxy, direction }: Way, bytes: number, lab: Lab): Promise<Measured> {
  const { children, url, headers } = proxy.running
  const pid = children[0]?.pid ?? 0
  const before = residentMemory(pid)
  const peakOf = watchMemory(pid)
  const { port, protocol } = new URL(url)
  const plan = { port: Number(port), secure: protocol === 'https:', headers, direction, bytes }
  const [{ seconds, faults }, busy] = await whileBusy(pid, () => transfer(plan, lab.otherCore))
  return { rate: bytes / MEBIBYTE / seconds, busy, grown: peakOf() - before, faults }
}
