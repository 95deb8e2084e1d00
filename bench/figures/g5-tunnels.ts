import { readFile } from 'node:fs/promises'
import { stopPeers } from '../contest/contest.ts'
import { startNodeDevice } from '../device.ts'
import type { Figure } from '../lab.ts'
import { runTunnels } from '../load/tunnels.ts'
import { mebibytes, watchMemory, whileBusy } from '../process-usage.ts'
import { say } from '../run-program.ts'
import { curveFindings, type Point } from './curve.ts'
import { startPostern } from './g1-g4-growth.ts'

const TUNNELS = [1, 10, 100, 1_000, 5_000]

export const tunnels: Figure = {
  id: 'G5',
  title: 'Throughput by tunnels',
  about:
    'WebSocket upgrades, all tunnels open at once; on each a message of 32 bytes goes to the device and back, repeatedly.',
  async measure(lab) {
    const device = await startNodeDevice(lab.otherCore)
    const set = ['listen.max_connections=6000', 'upstream.max_tunnels=6000']
    const contestant = await startPostern(lab, set, device.port)
    const { url, headers, children } = contestant.running
    const pid = children[0]?.pid ?? 0
    const most = await maxTunnels()
    const points: Point[] = []
    for (const count of TUNNELS.filter((wanted) => wanted <= most)) {
      const watch = watchMemory(pid)
      const plan = { port: Number(new URL(url).port), headers, count, seconds: lab.seconds }
      const [{ rate, failed }, busy] = await whileBusy(pid, () => runTunnels(plan, lab.otherCore))
      points.push({ x: count, rate, busy, memory: mebibytes((await watch.stop()).peak), failed })
      say(`  ${count} tunnels: ${rate.toFixed(0)} messages/s`)
    }
    await stopPeers([contestant])
    await device.child.stop()
    const about = {
      id: 'G5',
      what: 'tunnels',
      rate: 'messages/s',
      unit: 'tunnel',
      rises: 'one tunnel waits for its own echo; from here on there is always a message to process',
      falls: 'each tunnel is two more sockets to poll, with buffers that no longer fit the processor caches',
    }
    const findings = curveFindings(about, { postern: points })
    const missed = TUNNELS.filter((wanted) => wanted > most)
    const skipped = `skipped: ${missed.join(', ')} tunnels need more open files`
    return { ...findings, notes: [...findings.notes, ...(missed.length === 0 ? [] : [skipped])] }
  },
}

/** Open files of a process besides its tunnels. */
const OTHER_FILES = 200

/** How many tunnels one process may open: each needs two sockets, and the limit on open files counts them. */
async function maxTunnels(): Promise<number> {
  const limits = await readFile('/proc/self/limits', 'utf8').catch(() => '')
  const hard = /^Max open files\s+\S+\s+(\d+)/m.exec(limits)?.[1]
  return hard === undefined ? Number.POSITIVE_INFINITY : (Number(hard) - OTHER_FILES) / 2
}
