import { stopPeers } from '../contest/contest.ts'
import { startNodeDevice } from '../device.ts'
import type { Figure } from '../figure.ts'
import { type Curve, curveFindings, type Point } from './curve.ts'
import { measurePoint, startPostern } from './point.ts'

/** Bytes. */
const SIZES = [0, 1 << 10, 1 << 14, 1 << 18, 1 << 20, 10 << 20]

const CONNECTIONS = 16

/** For large bodies, so that some are through when the time is up. */
const FEW = 4
const LARGE = 1 << 20

export const bodySize: Figure = {
  id: 'G2',
  title: 'Throughput by body size',
  about: `Bodies of 0 to 10 MiB, down from the device and up to it, on ${CONNECTIONS} connections, of 1 MiB and more on ${FEW}; on the axis 0.1 KiB stands for none. Downloads are read by wrk where it is installed, because autocannon keeps every body.`,
  async measure(lab) {
    const device = await startNodeDevice(lab.otherCore)
    const contestant = await startPostern(lab, lab.autocannon, [], device.port)
    const { url, headers } = contestant.running
    const down: Point[] = []
    const up: Point[] = []
    for (const size of SIZES) {
      const connections = size < LARGE ? CONNECTIONS : FEW
      const common = { headers, connections, until: { seconds: lab.seconds }, core: lab.otherCore }
      const reader = { ...contestant, generator: lab.wrk ?? lab.autocannon }
      const from = `${url}/bytes/${size}`
      down.push(await measurePoint(reader, size, 'bytes down', { ...common, url: from }))
      const sender = { ...contestant, generator: lab.autocannon }
      const sent = { ...common, url, upload: size, body: String(size) }
      up.push(await measurePoint(sender, size, 'bytes up', sent))
    }
    await stopPeers([contestant])
    await device.child.stop()
    const curves: Curve[] = [
      { name: 'postern, down', ours: true, points: down.map(perKibibyte) },
      { name: 'postern, up', ours: true, points: up.map(perKibibyte) },
    ]
    return curveFindings(ABOUT, curves)
  },
}

const ABOUT = {
  id: 'G2',
  what: 'KiB of body',
  rate: 'MiB/s',
  scale: 'log',
  rises: 'below that, the cost of a request counts, not that of its bytes',
  falls: 'every piece is copied through four sockets, whose buffers no longer fit the processor caches',
} as const

const MEBIBYTE = 1 << 20

/** The size in KiB, with a tenth of one for none, which no logarithmic axis has; the rate in MiB. */
function perKibibyte({ x, rate, ...point }: Point): Point {
  return { ...point, x: x === 0 ? 0.1 : x / 1024, rate: (rate * x) / MEBIBYTE }
}
