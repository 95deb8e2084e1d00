import { compete, startPeers, under } from '../contest/contest.ts'
import { busyNotes, costCheck, type Row, ratioCheck, rowFaults, rowsTable } from '../contest/row.ts'
import type { Check } from '../figure.ts'
import type { Figure } from '../lab.ts'
import { HTTP2_CONNECTIONS, STREAMS } from '../load/h2load.ts'
import { makeCertificate } from '../peers/certificate.ts'
import { nginxTlsPeer } from '../peers/nginx.ts'
import { posternPeer } from '../peers/postern.ts'

export const tls: Figure = {
  id: 'P5',
  title: 'The same over TLS',
  about: `HTTP/1.1 with 64 connections, and HTTP/2 with ${HTTP2_CONNECTIONS} connections of ${STREAMS} streams each, beside nginx with the same certificate.`,
  async measure(lab) {
    // As many places at the device as concurrent requests: nginx does not queue either.
    const set = [`upstream.max_in_flight=${HTTP2_CONNECTIONS * STREAMS}`]
    const pair = await makeCertificate()
    const peers = [posternPeer({ tls: true, set, program: lab.program }), nginxTlsPeer(pair)]
    const started = await startPeers(lab, peers)
    const http1 = await compete(lab, under(lab.wrk ?? lab.autocannon, started))
    const http2 = await compete(lab, under(lab.h2load, started), { connections: HTTP2_CONNECTIONS })

    const ratio = (id: string, rows: readonly Row[], protocol: string, reach: number): Check =>
      ratioCheck(rows, 'nginx', { id, what: `of the rate of nginx, ${protocol}`, reach })
    return {
      checks: [
        ratio('P5 HTTP/1.1', http1, 'HTTP/1.1 over TLS', 0.5),
        ratio('P5 HTTP/2', http2, 'HTTP/2', 0.25),
        costCheck(http1, 'P5 CPU HTTP/1.1', 'processor time per request, HTTP/1.1 over TLS'),
        costCheck(http2, 'P5 CPU HTTP/2', 'processor time per request, HTTP/2'),
      ],
      tables: [rowsTable('HTTP/1.1 over TLS', http1), rowsTable('HTTP/2', http2)],
      notes: [...busyNotes(http1), ...busyNotes(http2)],
      faults: [...rowFaults(http1), ...rowFaults(http2)],
    }
  },
}
