import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { flood } from '../../src/verify/flood.ts'
import { temporaryFolder } from '../child.ts'
import { stopPeers } from '../contest/contest.ts'
import type { Figure } from '../figure.ts'
import { tokenRequest } from '../sidecar.ts'
import { curveFindings, type Point } from './curve.ts'
import { measurePoint, notInstalled, startPostern } from './point.ts'

/** Live tokens: each login issues two. */
const TOKENS = [2, 100, 1_000, 10_000, 100_000]

/** Concurrent logins. */
const CONNECTIONS = 10

export const tokens: Figure = {
  id: 'G4',
  title: 'Throughput by live tokens',
  about:
    'Each request carries another of up to 50,000 access tokens. Their refresh tokens are live too, in memory (see P8) and in the token file. wrk sends the requests, because autocannon would have to build each of them again.',
  async measure(lab) {
    const { wrk } = lab
    if (wrk === undefined) return notInstalled('wrk')
    const set = [`tokens.capacity=${2 * Math.max(...TOKENS)}`]
    const contestant = await startPostern(lab, wrk, set)
    const { url, headers } = contestant.running
    const file = join(await temporaryFolder(), 'tokens')
    const issued = [(headers.Authorization ?? '').replace('Bearer ', '')]
    const points: Point[] = []
    for (const live of TOKENS.filter((count) => count <= Math.max(...TOKENS) * lab.part || count <= 1_000)) {
      await login(url, live / 2 - issued.length, issued)
      await writeFile(file, `${issued.join('\n')}\n`)
      points.push(
        await measurePoint(contestant, 2 * issued.length, 'tokens', {
          url,
          // many.lua adds the token of the file.
          headers: {},
          connections: 64,
          until: { seconds: lab.seconds },
          core: lab.otherCore,
          many: ['tokens', file],
        }),
      )
    }
    await stopPeers([contestant])
    return curveFindings(
      {
        id: 'G4',
        what: 'live tokens',
        rate: 'requests/s',
        scale: 'log',
        rises: 'this is noise: fewer tokens cost no more',
        falls: 'the hash table of tokens no longer fits the processor caches',
      },
      [{ name: 'postern', ours: true, points }],
    )
  },
}

/** Logs in `times` times and appends the access tokens to `issued`. */
async function login(url: string, times: number, issued: string[]): Promise<void> {
  if (times <= 0) return
  const report = await flood({
    url,
    requests: [{ path: '/oauth/token', ...tokenRequest() }],
    connections: Math.min(CONNECTIONS, times),
    pipelining: 1,
    until: { requestsEach: Math.floor(times / Math.min(CONNECTIONS, times)) },
    onResponse(_index, { status, body }) {
      if (status === 200) issued.push((JSON.parse(body) as { access_token: string }).access_token) // C4
    },
  })
  if (report.faults.length > 0) throw new Error(report.faults.join(', '))
}
