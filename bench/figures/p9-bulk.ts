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
import { processorTime } from '../processor-time.ts'
import { MEBIBYTE, type MemoryRecord, residentMemory, watchMemory } from '../resident-memory.ts'
import { say } from '../say.ts'

const GIBIBYTE = 2 ** 30

type Direction = Transfer['direction']

/** One large body through one proxy. */
interface Passage {
  /** MiB per second. */
  readonly rate: number
  /** The part of its core that the proxy used. */
  readonly busy: number | undefined
  /** Bytes that the proxy's memory grew by meanwhile, at most. */
  readonly grown: number | undefined
  readonly memory: MemoryRecord
  readonly fault: string | undefined
}

/** A proxy and a direction. */
interface Lane {
  readonly contestant: Contestant
  readonly direction: Direction
}

export const bulk: Figure = {
  id: 'P9',
  title: 'One large body',
  about:
    '1 GiB up and 1 GiB down, beside nginx that keeps nothing in files. The device counts what it gets; the client counts what comes.',
  async measure(lab) {
    const bytes = Math.round(GIBIBYTE * Math.max(lab.part, 1 / 8))
    const device = await startNodeDevice(lab.otherCore)
    const proxies = await startPeers(
      lab,
      [posternPeer({ program: lab.program }), nginxStreamPeer],
      device.port,
    )
    const lanes = proxies.flatMap((contestant) =>
      (['up', 'down'] as const).map((direction): Lane => ({ contestant, direction })),
    )
    const results = await alternate(lanes, lab.rounds, async (lane, round) => {
      const passed = await pass(lane, bytes, lab)
      const { contestant, direction } = lane
      say(`  round ${round + 1}: ${contestant.peer.name} ${direction}: ${passed.rate.toFixed(0)} MiB/s`)
      return passed
    })
    await stopPeers(proxies)
    await device.child.stop()

    const of = (name: string, direction: Direction): readonly Passage[] =>
      [...results].find(
        ([lane]) => lane.contestant.peer.name === name && lane.direction === direction,
      )?.[1] ?? []
    const rateCheck = (direction: Direction): Check => {
      const rates = (name: string): number[] => of(name, direction).map(({ rate }) => rate)
      const what = `of nginx's rate, ${direction}`
      const check = { id: `P9 ${direction}`, what, better: 'more', reach: 0.6 } as const
      return ratioOf(rates('postern'), rates('nginx'), check)
    }
    const ours = [...of('postern', 'up'), ...of('postern', 'down')]
    const grown = ours.map((passed) => passed.grown).filter((value) => value !== undefined)
    return {
      checks: [
        rateCheck('up'),
        rateCheck('down'),
        {
          id: 'P9 memory',
          what: 'memory grows while a body passes, at most',
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
          rows: lanes.map(({ contestant: { peer }, direction }) => {
            const rate = summarize(of(peer.name, direction).map((passed) => passed.rate))
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
          title: 'Resident memory while the first body of each kind passes',
          x: { label: 'seconds', scale: 'linear' },
          y: { label: 'MiB', scale: 'linear' },
          series: lanes.map(({ contestant: { peer }, direction }): Line => {
            const points = of(peer.name, direction)[0]?.memory.points ?? []
            return { name: `${peer.name}, ${direction}`, ours: peer.name === 'postern', points }
          }),
        },
      ],
      tables: [
        {
          caption: 'Large bodies',
          head: ['proxy', 'way', 'MiB/s', 'busy', 'memory grew by, MiB'],
          rows: lanes.map(({ contestant: { peer }, direction }) => {
            const passed = of(peer.name, direction)
            const [rate, busy, most] = [
              summarize(passed.map((one) => one.rate))?.median,
              summarize(passed.map((one) => one.busy))?.median,
              summarize(passed.map((one) => one.grown))?.range[1],
            ]
            return [peer.name, direction, fixed(rate, 0), percent(busy), fixed(most && most / MEBIBYTE, 1)]
          }),
        },
      ],
      notes: [
        ...lanes.flatMap(({ contestant: { peer }, direction }) => {
          const busy = summarize(of(peer.name, direction).map((passed) => passed.busy))?.median
          return busyNote(`${peer.name}, ${direction}`, busy)
        }),
        ...(bytes < GIBIBYTE ? [`${bytes / MEBIBYTE} MiB, not 1 GiB: this was a quick run`] : []),
      ],
      faults: [...results].flatMap(([{ contestant }, passed]) =>
        passed.flatMap(({ fault }) => (fault === undefined ? [] : [`${contestant.peer.name}: ${fault}`])),
      ),
    }
  },
}

async function pass({ contestant: { running }, direction }: Lane, bytes: number, lab: Lab): Promise<Passage> {
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
