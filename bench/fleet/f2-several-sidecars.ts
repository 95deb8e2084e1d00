import { availableParallelism } from 'node:os'
import { type Contestant, measure } from '../contest/contest.ts'
import { DEVICE_BODY } from '../device.ts'
import type { Figure, Table } from '../figure.ts'
import { fixed } from '../format.ts'
import { notInstalled } from '../growth/point.ts'
import type { Lab } from '../lab.ts'
import { alternate, ratioOf, type Sample, summarize } from '../measure.ts'
import { posternPeer } from '../peers/postern.ts'
import { requestOnce } from '../request.ts'
import { say } from '../run-program.ts'
import { askForToken } from '../sidecar.ts'
import { startSharing, type WindowsAt } from './fleet-sidecar.ts'
import { type Server, serverVersion, startServer } from './server.ts'
import { usageOf } from './usage.ts'

const MOST = 3

/** Keep-alive connections to each sidecar. */
const CONNECTIONS = 32

/** Some sidecars of one device that are loaded at the same time. */
interface Group {
  readonly windows: WindowsAt
  readonly members: readonly Contestant[]
}

/** One round of a group. */
export interface GroupSample {
  readonly requestsPerSecond: number
  /** Processor time of the sidecars, and of the server, for one request (µs). */
  readonly cpuPerRequest: number | undefined
  readonly serverPerRequest: number
  readonly failed: number
}

export const severalSidecars: Figure = {
  id: 'F2',
  title: 'From one sidecar to three',
  about: `One to ${MOST} sidecars of one device share their tokens, with local and with shared windows; the token of the load was issued by the first. All are loaded at the same time. The processor time per request is what grows if sharing costs more with each sidecar; the rate grows only where there are cores.`,
  async measure(lab) {
    if ((await serverVersion()) === undefined) return notInstalled('redis-server')
    const server = await startServer(lab.otherCore)
    // A quick run compares one with three, and only with shared windows.
    const modes: readonly WindowsAt[] = lab.part < 1 ? ['shared'] : ['local', 'shared']
    const groups = (await Promise.all(modes.map((windows) => startGroups(lab, server, windows)))).flat()
    const samples = await alternate(groups, lab.rounds, async (group, round) => {
      const sample = await measureGroup(lab, server, group)
      const name = `${group.members.length} sidecars, ${group.windows} windows`
      say(`  round ${round + 1}: ${name}: ${sample.requestsPerSecond.toFixed(0)}/s`)
      return sample
    })
    for (const { members } of groups.filter((group) => group.members.length === MOST)) {
      for (const { running } of members) await Promise.all(running.children.map((child) => child.stop()))
    }
    await server.stop()

    const costs = (windows: WindowsAt, count: number): (number | undefined)[] =>
      [...samples]
        .find(([group]) => group.windows === windows && group.members.length === count)?.[1]
        .map(({ cpuPerRequest }) => cpuPerRequest) ?? []
    return {
      checks: modes.map((windows) =>
        ratioOf(costs(windows, MOST), costs(windows, 1), {
          id: `F2 ${windows} windows`,
          what: `processor time per request with ${MOST} sidecars and ${windows} windows, beside one`,
          better: 'less',
          reach: 1.25,
        }),
      ),
      charts: [],
      tables: [groupTable(samples)],
      notes: [coresNote(lab)],
      faults: [...samples].flatMap(([{ windows, members }, of]) => {
        const failed = of.reduce((sum, sample) => sum + sample.failed, 0)
        const name = `${members.length} sidecars, ${windows} windows`
        return failed === 0 ? [] : [`${name}: ${failed} responses were wrong or missing`]
      }),
    }
  },
}

/** The cores of the sidecars: all but the one of the device and the load. */
export function sidecarCores(
  { proxyCore, otherCore }: Pick<Lab, 'proxyCore' | 'otherCore'>,
  cores: number,
): readonly (number | undefined)[] {
  if (proxyCore === undefined) return [undefined]
  return Array.from({ length: cores }, (_, core) => core).filter((core) => core !== otherCore)
}

function coresNote(lab: Lab): string {
  const cores = sidecarCores(lab, availableParallelism()).length
  return cores >= MOST
    ? 'each sidecar has a core of its own'
    : `the sidecars share ${cores} core${cores === 1 ? '' : 's'}, so the rate cannot grow here: read the processor time`
}

/** Starts three sidecars of one device. The groups are the first, the first two, and all. */
async function startGroups(lab: Lab, server: Server, windows: WindowsAt): Promise<Group[]> {
  const cores = sidecarCores(lab, availableParallelism())
  const members: Contestant[] = []
  let authorization = ''
  for (let i = 0; i < MOST; i += 1) {
    const core = cores[i % cores.length]
    const { url, child } = await startSharing(lab, server, { prefix: `f2-${windows}`, windows, core })
    if (i === 0) authorization = `Bearer ${await askForToken(url)}`
    const running = { url, children: [child], headers: { Authorization: authorization } }
    members.push({ peer: posternPeer(), version: '', running, generator: lab.autocannon })
    await measure(members[i] as Contestant, await loadOf(lab, running, lab.warmUpSeconds)) // it was just added
  }
  const counts = lab.part < 1 ? [1, MOST] : members.map((_, i) => i + 1)
  return counts.map((count) => ({ windows, members: members.slice(0, count) }))
}

type Running = Contestant['running']

async function loadOf(lab: Lab, running: Running, seconds: number): Promise<Parameters<typeof measure>[1]> {
  const { status, body, headBytes } = await requestOnce(running.url, { headers: running.headers })
  if (status !== 200 || body !== DEVICE_BODY) throw new Error(`a sidecar responds with ${status} ${body}`)
  const until = { seconds: Math.max(1, seconds) }
  return {
    ...running,
    connections: CONNECTIONS,
    until,
    expected: { status, body, headBytes },
    core: lab.otherCore,
  }
}

async function measureGroup(lab: Lab, { client }: Server, { members }: Group): Promise<GroupSample> {
  let samples: readonly (Sample & { readonly requests: number })[] = []
  const usage = await usageOf(client, 1, async () => {
    samples = await Promise.all(
      members.map(async (member) => {
        const sample = await measure(member, await loadOf(lab, member.running, lab.seconds))
        return { ...sample, requests: sample.requestsPerSecond * lab.seconds }
      }),
    )
  })
  const requests = samples.reduce((sum, sample) => sum + sample.requests, 0)
  const used = samples.reduce<number | undefined>(
    (sum, { cpuPerRequest, requests: of }) =>
      sum === undefined || cpuPerRequest === undefined ? undefined : sum + cpuPerRequest * of,
    0,
  )
  return {
    requestsPerSecond: samples.reduce((sum, sample) => sum + sample.requestsPerSecond, 0),
    cpuPerRequest: used === undefined ? undefined : used / requests,
    serverPerRequest: usage.processor / requests,
    failed: samples.reduce((sum, { failed }) => sum + failed, 0),
  }
}

function groupTable(samples: ReadonlyMap<Group, readonly GroupSample[]>): Table {
  return {
    caption: 'Sidecars of one device, loaded at the same time',
    head: ['windows', 'sidecars', 'req/s', 'CPU µs/req', 'a core each would give req/s', 'server µs/req'],
    rows: [...samples].map(([{ windows, members }, of]) => {
      const cost = summarize(of.map(({ cpuPerRequest }) => cpuPerRequest))?.median
      return [
        windows,
        String(members.length),
        fixed(summarize(of.map(({ requestsPerSecond }) => requestsPerSecond))?.median, 0),
        fixed(cost, 1),
        fixed(cost === undefined ? undefined : (members.length * 1e6) / cost, 0),
        fixed(summarize(of.map(({ serverPerRequest }) => serverPerRequest))?.median, 2),
      ]
    }),
  }
}
