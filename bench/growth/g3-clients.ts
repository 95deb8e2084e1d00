import { stopPeers } from '../contest/contest.ts'
import type { Figure } from '../figure.ts'
import { curveFindings, type Point } from './curve.ts'
import { leftOut, measurePoint, startPostern } from './point.ts'

const CLIENTS = [1, 100, 10_000, 100_000, 1_000_000]

/** For one more step to have all of its clients seen (seconds). */
const LONGEST_FILLING = 60

export const clients: Figure = {
  id: 'G3',
  title: 'Throughput by distinct clients',
  about:
    'Each request comes from another of up to a million addresses, as a trusted proxy in front would say it in X-Forwarded-For; every one of them has a window that stays open (P8 tells what that takes in memory). wrk makes the requests, because autocannon would have to build each anew.',
  async measure(lab) {
    const { wrk } = lab
    if (wrk === undefined) return leftOut('wrk')
    const set = ['listen.trusted_proxies=127.0.0.1', 'limits.api.window=1d']
    const contestant = await startPostern(lab, wrk, set)
    const points: Point[] = []
    let seen = 0
    for (const most of CLIENTS) {
      const common = { ...contestant.running, connections: 64, core: lab.otherCore }
      const run = (count: number, first: number, seconds: number): Promise<Point> =>
        measurePoint(contestant, count, 'clients', {
          ...common,
          until: { seconds },
          many: ['clients', String(most), String(first)],
        })
      // Newcomers first, until there are as many as there shall be.
      for (let filled = 0; seen < most && filled < LONGEST_FILLING * lab.part; filled += lab.seconds) {
        const { rate } = await run(most, seen, lab.seconds)
        seen = Math.min(most, seen + Math.floor(rate * lab.seconds))
      }
      points.push(await run(seen, 0, lab.seconds))
      if (seen < most) break
    }
    await stopPeers([contestant])
    return curveFindings(
      {
        id: 'G3',
        what: 'distinct clients',
        rate: 'requests/s',
        scale: 'log',
        rises: 'this is noise: fewer clients cost no more',
        falls:
          'windows are found in a hash table that no longer fits the processor caches, and a client that was not seen among the last 4,096 has its address parsed anew',
      },
      [{ name: 'postern', ours: true, points }],
    )
  },
}
