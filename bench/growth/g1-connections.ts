import { startPeers, stopPeers } from '../contest/contest.ts'
import type { Figure } from '../figure.ts'
import { haproxyPeer } from '../peers/haproxy.ts'
import { posternPeer } from '../peers/postern.ts'
import { type Curve, curveFindings, type Point } from './curve.ts'
import { measurePoint } from './point.ts'

const CONNECTIONS = [1, 2, 4, 16, 64, 256, 1_000]

/** Postern takes 1,000 connections as it comes, and has 64 places at the device with 128 waiting. */
const ROOM = ['listen.max_connections=2000', 'upstream.queue.size=2000']

export const connections: Figure = {
  id: 'G1',
  title: 'Throughput by connections',
  about:
    'Admitted requests over 1 to 1,000 keep-alive connections. Of all that come at once 64 are at the device (`upstream.max_in_flight`) and the others wait; the queue is long enough for all of them here.',
  async measure(lab) {
    const peers = [posternPeer({ set: ROOM, program: lab.program }), haproxyPeer]
    const started = await startPeers(lab, peers, lab.device.port)
    const curves: Curve[] = []
    for (const peer of started) {
      const contestant = { ...peer, generator: lab.wrk ?? lab.autocannon }
      const points: Point[] = []
      for (const count of CONNECTIONS) {
        points.push(
          await measurePoint(contestant, count, 'connections', {
            ...contestant.running,
            connections: count,
            until: { seconds: lab.seconds },
            core: lab.otherCore,
          }),
        )
      }
      curves.push({ name: peer.peer.name, ours: peer.peer.name === 'postern', points })
    }
    await stopPeers(started)
    return curveFindings(
      {
        id: 'G1',
        what: 'connections',
        rate: 'requests/s',
        scale: 'log',
        unit: 'connection',
        rises: 'one connection waits for its own answer; from here on there is always a request to work on',
        falls:
          'more requests than upstream.max_in_flight lets through wait in the queue, and each connection is one more socket to poll',
      },
      curves,
    )
  },
}
