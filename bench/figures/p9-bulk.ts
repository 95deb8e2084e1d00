import { type Contestant, startPeers, stopPeers } from '../contest/contest.ts'
import { busyNote } from '../contest/row.ts'
import { startNodeDevice } from '../device.ts'
import type { Check, Figure, Line } from '../figure.ts'
import { fixed, percent } from '../format.ts'
import type { Lab } from '../lab.ts'
import { type Transfer, transfer } from '../load/transfer.ts'
import { alternate, ratioOf, summarize } from '../measure.ts'
import { nginxStreamPeer } from '../peers/nginx.ts'
import { posternPeer } from '../peers/postern.ts'
import { MEBIBYTE, type MemoryRecord, processorTime, residentMemory, watchMemory } from '../process-usage.ts'
import { say } from '../run-program.ts'

const GIBIBYTE = 2 ** 30

type Direction = Transfer['direction']

/** The transfer of one large body through one proxy. */
interface Measured {
  /** MiB per second. */
  readonly rate: number
  /** Fraction of its core that the proxy used. */
  readonly busy: number | undefined
  /** Peak memory of the proxy minus its memory before the transfer (bytes). */
  readonly grown: number | undefined
  readonly memory: MemoryRecord
  readonly fault: string | undefined
}

/** A proxy and a direction. */
interface Combination {
  readonly contestant: Contestant
  readonly direction: Direction
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
    const combinations = proxies.flatMap((contestant) =>
      (['up', 'down'] as const).map((direction): Combination => ({ contestant, direction })),
    )
    const results = await alternate(combinations, lab.rounds, async (combination, round) => {
      const measured = await measureTransfer(combination, bytes, lab)
      const { contestant, direction } = combination
      say(`  round ${round + 1}: ${contestant.peer.name} ${direction}: ${measured.rate.toFixed(0)} MiB/s`)
      return measured
    })
    await stopPeers(proxies)
    await device.child.stop()

    const of = (name: string, direction: Direction): readonly Measured[] =>
      [...results].find(
        ([combination]) => combination.contestant.peer.name === name && combination.direction === direction,
      )?.[1] ?? []
    const rateCheck = (direction: Direction): Check => {
      const rates = (name: string): number[] => of(name, direction).map(({ rate }) => rate)
      const what = `of the rate of nginx, ${direction}`
      const check = { id: `P9 ${direction}`, what, better: 'more', reach: 0.6 } as const
      return ratioOf(rates('postern'), rates('nginx'), check)
    }
    const ours = [...of('postern', 'up'), ...of('postern', 'down')]
    const grown = ours.map((measured) => measured.grown).filter((value) => value !== undefined)
    return {
      checks: [
        rateCheck('up'),
        rateCheck('down'),
        {
          id: 'P9 memory',
          what: 'largest growth of memory during a transfer',
          unit: 'MiB',
          better: 'less',
          reach: 20,
          value: grown.length === 0 ? undefined : Math.max(...grown) / MEBIBYTE,
          comparable: 'never',
        },
      ],
      charts: [
        {
          kind: 'bars',
          title: `Rate of a body of ${bytes / MEBIBYTE} MiB`,
          unit: 'MiB/s',
          series: ['MiB/s'],
          rows: combinations.map(({ contestant: { peer }, direction }) => {
            const rate = summarize(of(peer.name, direction).map((measured) => measured.rate))
            return {
              label: `${peer.name}, ${direction}`,
              ours: peer.name === 'postern',
              values: [rate?.median],
              range: rate?.range,
            }
          }),
        },
        {
          kind: 'lines',
          title: 'Resident memory during the first transfer of each kind',
          x: { label: 'seconds', scale: 'linear' },
          y: { label: 'MiB', scale: 'linear' },
          series: combinations.map(({ contestant: { peer }, direction }): Line => {
            const points = of(peer.name, direction)[0]?.memory.points ?? []
            return { name: `${peer.name}, ${direction}`, ours: peer.name === 'postern', points }
          }),
        },
      ],
      tables: [
        {
          caption: 'Large bodies',
          head: ['proxy', 'way', 'MiB/s', 'busy', 'memory grew by, MiB'],
          rows: combinations.map(({ contestant: { peer }, direction }) => {
            const measured = of(peer.name, direction)
            const [rate, busy, most] = [
              summarize(measured.map((one) => one.rate))?.median,
              summarize(measured.map((one) => one.busy))?.median,
              summarize(measured.map((one) => one.grown))?.range[1],
            ]
            return [peer.name, direction, fixed(rate, 0), percent(busy), fixed(most && most / MEBIBYTE, 1)]
          }),
        },
      ],
      notes: [
        ...combinations.flatMap(({ contestant: { peer }, direction }) => {
          const busy = summarize(of(peer.name, direction).map((measured) => measured.busy))?.median
          return busyNote(`${peer.name}, ${direction}`, busy)
        }),
        ...(bytes < GIBIBYTE ? [`${bytes / MEBIBYTE} MiB, not 1 GiB: this was a quick run`] : []),
      ],
      faults: [...results].flatMap(([{ contestant }, measured]) =>
        measured.flatMap(({ fault }) => (fault === undefined ? [] : [`${contestant.peer.name}: ${fault}`])),
      ),
    }
  },
}

async function measureTransfer(
  { contestant: { running }, direction }: Combination,
  bytes: number,
  lab: Lab,
): Promise<Measured> {
  const pid = running.children[0]?.pid ?? 0
  const [memoryBefore, timeBefore] = [await residentMemory(pid), await processorTime(pid)]
  const watch = watchMemory(pid)
  const port = Number(new URL(running.url).port)
  const { seconds, fault } = await transfer(
    { port, headers: running.headers, direction, bytes },
    lab.otherCore,
  )
  const memory = await watch.stop()
  const timeAfter = await processorTime(pid)
  return {
    rate: bytes / MEBIBYTE / seconds,
    busy:
      timeBefore === undefined || timeAfter === undefined
        ? undefined
        : (timeAfter - timeBefore) / seconds / 1000,
    grown: memoryBefore === undefined || memory.peak === undefined ? undefined : memory.peak - memoryBefore,
    memory,
    fault,
  }
}
