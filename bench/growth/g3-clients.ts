import { stopPeers } from '../contest/contest.ts'
import type { Figure } from '../figure.ts'
import { curveFindings, type Point } from './curve.ts'
import { measurePoint, notInstalled, startPostern } from './point.ts'

const CLIENTS = [1, 100, 10_000, 100_000, 1_000_000]

/** Time limit for the sidecar to see all clients of a step (seconds). */
const MAX_FILL_TIME = 60

export const clients: Figure = {
  id: 'G3',
  title: 'Throughput by distinct clients',
  about:
    'Each request comes from another of up to a million addresses, which a trusted proxy in front states in X-Forwarded-For; each address has a window that stays open (see P8 for its memory). wrk sends the requests, because autocannon would have to build each of them again.',
  async measure(lab) {
    const { wrk } = lab
    if (wrk === undefined) return notInstalled('wrk')
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
      // First only new clients, until the sidecar has seen `most` of them.
      for (let filled = 0; seen < most && filled < MAX_FILL_TIME * lab.part; filled += lab.seconds) {
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
          'the hash table of windows no longer fits the processor caches, and the address of a client that is not among the last 4,096 is parsed again',
      },
      [{ name: 'postern', ours: true, points }],
    )
  },
}
