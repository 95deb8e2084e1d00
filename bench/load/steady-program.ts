import http from 'node:http'
import https from 'node:https'
import process from 'node:process'
import { setTimeout as pause } from 'node:timers/promises'
import { summarizeLatencies } from '../measure.ts'
import { type SteadyLoad, type SteadyReport, WARM_UP } from './steady.ts'

/** `node steady-program.ts LOAD`: runs a `SteadyLoad`, and prints a `SteadyReport` as JSON. */
const load = JSON.parse(process.argv[2] ?? '{}') as SteadyLoad // of `runSteadily`
/** Timeout of a response (ms). */
const TIMEOUT = 5_000
// The sidecar signs its own certificate, and the connection stays on loopback.
const options = { keepAlive: true, scheduling: 'lifo', timeout: TIMEOUT, rejectUnauthorized: false } as const
const secure = load.url.startsWith('https:')
const agent = secure ? new https.Agent(options) : new http.Agent(options)
const { request } = secure ? https : http
const latencies: number[] = []
let answered = 0
let failed = 0

function send(timed: boolean): Promise<void> {
  return new Promise((done) => {
    const start = performance.now()
    const settle = (correct: boolean): void => {
      if (correct) answered += 1
      else failed += 1
      if (correct && timed) latencies.push(performance.now() - start)
      done()
    }
    const { headers, address: localAddress } = load
    const sent = request(load.url, { agent, headers, localAddress }, (response) => {
      let body = ''
      response.setEncoding('utf8').on('data', (text: string) => {
        body += text
      })
      response.on('end', () => settle(response.statusCode === load.status && body === load.body))
      response.on('error', () => settle(false))
    })
    sent.on('timeout', () => sent.destroy())
    sent.on('error', () => settle(false)).end()
  })
}

const untimed = Math.round(load.rate * WARM_UP)
const wanted = untimed + Math.round(load.rate * load.seconds)
const begin = performance.now()
const responses: Promise<void>[] = []
while (responses.length < wanted) {
  const due = ((performance.now() - begin) / 1000) * load.rate
  // One request at a time: after a pause of this process a burst would measure itself.
  if (responses.length <= due) responses.push(send(responses.length >= untimed))
  await pause(1000 / load.rate / 4)
}
await Promise.all(responses)
agent.destroy()
const report: SteadyReport = { ...summarizeLatencies(latencies), answered, failed }
process.stdout.write(`${JSON.stringify(report)}\n`)
