import { type Contestant, startPeers, stopPeers } from '../contest/contest.ts'
import { busyNote, OURS } from '../contest/row.ts'
import { startNodeDevice } from '../device.ts'
import { fixed, percent } from '../format.ts'
import type { Figure, Lab } from '../lab.ts'
import { type Transfer, transfer } from '../load/transfer.ts'
import { alternate, checkOf, medianOf, ratioOf, summarize } from '../measure.ts'
import { nginxStreamPeer } from '../peers/nginx.ts'
import { posternPeer } from '../peers/postern.ts'
import { MEBIBYTE, mebibytes, residentMemory, watchMemory, whileBusy } from '../process-usage.ts'
import { say } from '../run-program.ts'

const GIBIBYTE = 2 ** 30

/** The transfer of one large body through one proxy. */
interface Measured {
  /** MiB per second. */
  readonly rate: number
  /** Fraction of its core that the proxy used. */
  readonly busy: number | undefined
  /** Peak memory of the proxy minus its memory before the transfer (MiB). */
  readonly grown: number | undefined
  readonly fault: string | undefined
}

interface Way {
  readonly name: string
  readonly proxy: Contestant
  readonly direction: Transfer['direction']
}

export const bulk: Figure = {
  id: 'P9',
  title: 'One large body',
  about:
    '1 GiB up and 1 GiB down, beside nginx without temporary files. The device counts the bytes of an upload, the client those of a download.',
  async measure(lab) {
    const bytes = Math.round(GIBIBYTE * Math.max(lab.part, 1 / 8))
    const device = await startNodeDevice(lab.otherCore)
    const proxies = await startPeers(
      lab,
      [posternPeer({ program: lab.program }), nginxStreamPeer],
      device.port,
    )
    const ways = proxies.flatMap((proxy) =>
      (['up', 'down'] as const).map((direction): Way => {
        return { name: `${proxy.peer.name}, ${direction}`, proxy, direction }
      }),
    )
    const measured = [
      ...(await alternate(ways, lab.rounds, async (way, round) => {
        const one = await measureTransfer(way, bytes, lab)
        say(`  round ${round + 1}: ${way.name}: ${one.rate.toFixed(0)} MiB/s`)
        return one
      })),
    ]
    await stopPeers(proxies)
    await device.child.stop()

    const rates = (name: string): number[] =>
      measured.filter(([way]) => way.name === name).flatMap(([, of]) => of.map(({ rate }) => rate))
    const isOurs = ({ proxy }: Way): boolean => proxy.peer.name === OURS
    const grown = measured.filter(([way]) => isOurs(way)).flatMap(([, of]) => of.map((one) => one.grown))
    return {
      checks: [
        ...(['up', 'down'] as const).map((direction) =>
          ratioOf(
            `P9 ${direction}`,
            `of the rate of nginx, ${direction}`,
            rates(`${OURS}, ${direction}`),
            rates(`nginx, ${direction}`),
            { better: 'more', reach: 0.9 },
          ),
        ),
        checkOf(
          'P9 memory',
          'largest growth of memory during a transfer',
          'MiB',
          summarize(grown)?.range[1],
          {
            reach: 20,
          },
        ),
      ],
      tables: [
        {
          caption: 'Large bodies',
          head: ['proxy', 'MiB/s', 'busy', 'memory grew by, MiB'],
          rows: measured.map(([{ name }, of]) => [
            name,
            fixed(medianOf(of.map((one) => one.rate)), 0),
            percent(medianOf(of.map((one) => one.busy))),
            fixed(summarize(of.map((one) => one.grown))?.range[1], 1),
          ]),
        },
      ],
      notes: [
        ...measured.flatMap(([{ name }, of]) => busyNote(name, medianOf(of.map((one) => one.busy)))),
        ...(bytes < GIBIBYTE ? [`${bytes / MEBIBYTE} MiB, not 1 GiB: this was a quick run`] : []),
      ],
      faults: measured.flatMap(([{ name }, of]) =>
        of.flatMap(({ fault }) => (fault === undefined ? [] : [`${name}: ${fault}`])),
      ),
    }
  },
}

async function measureTransfer(
  { proxy: { running }, direction }: Way,
  bytes: number,
  lab: Lab,
): Promise<Measured> {
  const pid = running.children[0]?.pid ?? 0
  const before = await residentMemory(pid)
  const watch = watchMemory(pid)
  const plan = { port: Number(new URL(running.url).port), headers: running.headers, direction, bytes }
  const [{ seconds, fault }, busy] = await whileBusy(pid, () => transfer(plan, lab.otherCore))
  const { peak } = await watch.stop()
  const grown = before === undefined || peak === undefined ? undefined : peak - before
  return { rate: bytes / MEBIBYTE / seconds, busy, grown: mebibytes(grown), fault }
}
