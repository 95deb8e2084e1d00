import type { ServerResponse } from 'node:http'
import { type MovableClock, nextThread } from '../support/clock.ts'

/** Sends a body byte by byte, one each second, as long as the client waits for its end. */
export async function drip(response: ServerResponse, clock: MovableClock): Promise<void> {
  response.flushHeaders()
  await whileWaiting(response, clock, () => void response.write('.'))
}

/** Answers nothing as long as the client waits. */
export function hold(response: ServerResponse, clock: MovableClock): Promise<void> {
  return whileWaiting(response, clock, () => {})
}

/** Sends an interim response (102) each 20 seconds, as long as the client waits for the response. */
export function announce(response: ServerResponse, clock: MovableClock): Promise<void> {
  return whileWaiting(response, clock, () => response.writeProcessing(), 20_000)
}

async function whileWaiting(
  response: ServerResponse,
  clock: MovableClock,
  each: () => void,
  step = 1_000,
): Promise<void> {
  let waits = true
  response.on('close', () => {
    waits = false
  })
  while (waits) {
    each()
    // What was sent arrives before time passes.
    for (let turn = 0; turn < 3; turn += 1) await nextThread()
    await clock.advance(step)
  }
}
