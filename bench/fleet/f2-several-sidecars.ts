import { availableParallelism } from 'node:os'
import { type Contestant, loadOf, measure } from '../contest/contest.ts'
import { failedFault, type Sample } from '../contest/row.ts'
import { fixed } from '../format.ts'
import { type Figure, type Lab, notInstalled } from '../lab.ts'
import { alternate, medianOf, ratioOf, type Series } from '../measure.ts'
import { posternPeer } from '../peers/postern.ts'
import { say } from '../run-program.ts'
import { type Server, serverVersion, sharing, startServer, type WindowsAt } from './server.ts'

const MOST = 3

/** Keep-alive connections to each sidecar. */
const CONNECTIONS = 32

/** Some sidecars of one device that are loaded at the same time. */
interface Group {
  readonly name: string
  readonly windows: WindowsAt
  readonly members: readonly Contestant[]
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
    const groups: Group[] = []
    for (const windows of modes) groups.push(...(await startGroups(lab, server, windows)))
    const rounds = await alternate(groups, lab.rounds, async (group, round) => {
      const sample = await measureGroup(lab, group)
      say(`  round ${round + 1}: ${group.name}: ${sample.requestsPerSecond.toFixed(0)}/s`)
      return sample
    })
    const samples = [...rounds]
    const costs = (windows: WindowsAt, count: number): Series =>
      samples
        .filter(([group]) => group.windows === windows && group.members.length === count)
        .flatMap(([, of]) => of.map(({ cpuPerRequest }) => cpuPerRequest))
    const cores = sidecarCores(lab, availableParallelism()).length
    return {
      checks: modes.map((windows) => {
        const what = `processor time per request with ${MOST} sidecars and ${windows} windows, beside one`
        return ratioOf(`F2 ${windows} windows`, what, costs(windows, MOST), costs(windows, 1), {
          reach: 1.25,
        })
      }),
      tables: [
        {
          caption: 'Sidecars of one device, loaded at the same time',
          head: ['sidecars', 'req/s', 'CPU µs/req', 'a core each would give req/s'],
          rows: samples.map(([{ name, members }, of]) => {
            const cost = medianOf(of.map(({ cpuPerRequest }) => cpuPerRequest))
            const rate = medianOf(of.map(({ requestsPerSecond }) => requestsPerSecond))
            return [name, fixed(rate, 0), fixed(cost, 1), fixed((members.length * 1e6) / cost, 0)]
          }),
        },
      ],
      notes: [
        cores >= MOST
          ? 'each sidecar has a core of its own'
          : `the sidecars share ${cores} of the cores, so the rate cannot grow here: read the processor time`,
      ],
      faults: samples.flatMap(([{ name }, of]) => failedFault(name, of)),
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

/** Starts three sidecars of one device. The groups are the first, the first two, and all. */
async function startGroups(lab: Lab, server: Server, windows: WindowsAt): Promise<Group[]> {
  const cores = sidecarCores(lab, availableParallelism())
  const set = sharing(server, `f2-${windows}`, windows)
  const peer = posternPeer({ program: lab.program, set })
  const members: Contestant[] = []
  for (let i = 0; i < MOST; i += 1) {
    const own = await peer.start({ devicePort: lab.device.port, core: cores[i % cores.length] })
    const running = { ...own, headers: members[0]?.running.headers ?? own.headers }
    const member: Contestant = { peer, version: '', running, generator: lab.autocannon }
    members.push(member)
    await measureMember(lab, member, Math.max(1, lab.warmUpSeconds))
  }
  const counts = lab.part < 1 ? [1, MOST] : members.map((_, i) => i + 1)
  return counts.map((count) => {
    return { name: `${count}, ${windows} windows`, windows, members: members.slice(0, count) }
  })
}

async function measureMember(lab: Lab, member: Contestant, seconds: number): Promise<Sample> {
  const load = { connections: CONNECTIONS, until: { seconds }, core: lab.otherCore }
  return measure(member, await loadOf(member, load))
}

type GroupSample = Pick<Sample, 'requestsPerSecond' | 'cpuPerRequest' | 'failed'>

/** All members at the same time. The processor time is that of the sidecars for one request (µs). */
async function measureGroup(lab: Lab, { members }: Group): Promise<GroupSample> {
  const samples = await Promise.all(members.map((member) => measureMember(lab, member, lab.seconds)))
  const sum = (of: (sample: Sample) => number): number => samples.reduce((all, sample) => all + of(sample), 0)
  const requestsPerSecond = sum((sample) => sample.requestsPerSecond)
  const used = sum((sample) => sample.cpuPerRequest * sample.requestsPerSecond)
  return { requestsPerSecond, cpuPerRequest: used / requestsPerSecond, failed: sum(({ failed }) => failed) }
}
