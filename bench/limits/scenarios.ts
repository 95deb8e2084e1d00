import { DOCUMENTED_LIMITS } from '../../src/verify/options.ts'
import { type RequestKind, RIGHT_PASSWORD, WITHOUT_TOKEN, WRONG_PASSWORD, withToken } from './request-kind.ts'
import type { Scenario, Shape, Stage } from './scenario.ts'

/** Many requests one after the other on each connection. */
const PLAIN: Shape = { connections: 50, until: { requestsEach: 40 } }

/** More connections than the limit. */
const CROWD: Shape = { connections: 400, until: { requestsEach: 5 } }

/** Each connection sends more than the limit plus the responses that autocannon leaves unread (see `flood`). */
const PIPELINED: Shape = { connections: 20, pipelining: 10, until: { requestsEach: 100 } }

/** Seconds; short, so that a flood spans several windows. */
const SHORT_WINDOW = 3

/** Two and a half windows: a flood crosses two boundaries and ends within the third window. */
const ACROSS: Shape = { connections: 30, until: { seconds: 2.5 * SHORT_WINDOW } }

/** Done before a short window closes, even on a busy machine. */
const SMALL: Shape = { connections: 30, until: { requestsEach: 10 } }

/** The floods over one transport. */
export function scenarios(tls: boolean): Scenario[] {
  const over = tls ? 'TLS' : 'cleartext'
  const scenario = (title: string, run: Scenario['run']): Scenario => ({
    title: `${over}: ${title}`,
    tls,
    limits: DOCUMENTED_LIMITS,
    windows: { exactly: 1 },
    run,
  })
  const api = async (stage: Stage): Promise<RequestKind> => withToken(await stage.token())
  return [
    scenario('api, valid token', async (stage) => stage.flood([await api(stage)], PLAIN)),
    scenario('api, valid token, 400 connections', async (stage) => stage.flood([await api(stage)], CROWD)),
    scenario('api, valid token, pipelined', async (stage) => stage.flood([await api(stage)], PIPELINED)),
    scenario('api, no token', (stage) => stage.flood([WITHOUT_TOKEN], PLAIN)),
    scenario('api, no token, pipelined', (stage) => stage.flood([WITHOUT_TOKEN], PIPELINED)),
    scenario('/oauth/token, right password', (stage) => stage.flood([RIGHT_PASSWORD], PLAIN)),
    scenario('/oauth/token, wrong password', (stage) => stage.flood([WRONG_PASSWORD], PLAIN)),
    scenario('/oauth/token, both, 400 connections', (stage) =>
      stage.flood([RIGHT_PASSWORD, WRONG_PASSWORD], CROWD),
    ),
    scenario('/oauth/token, both, pipelined', (stage) =>
      stage.flood([RIGHT_PASSWORD, WRONG_PASSWORD], PIPELINED),
    ),
    scenario('everything at once', async (stage) => {
      const withAToken = await api(stage)
      await Promise.all([
        stage.flood([withAToken, WITHOUT_TOKEN], PLAIN),
        stage.flood([WITHOUT_TOKEN, withAToken], PIPELINED),
        stage.flood([RIGHT_PASSWORD, WRONG_PASSWORD], PLAIN),
        stage.flood([WRONG_PASSWORD, RIGHT_PASSWORD], PIPELINED),
      ])
    }),
  ]
}

/** Floods both endpoint types across window boundaries, waits for the Retry-After of the last refusal, and floods again. */
export function reopening(tls: boolean): Scenario {
  return {
    title: `${tls ? 'TLS' : 'cleartext'}: windows of ${SHORT_WINDOW} s reopen`,
    tls,
    limits: {
      api: { ...DOCUMENTED_LIMITS.api, window: SHORT_WINDOW },
      oauth: { ...DOCUMENTED_LIMITS.oauth, window: SHORT_WINDOW },
    },
    windows: { atLeast: 4 },
    async run(stage) {
      const flooded = async (kind: RequestKind): Promise<void> => {
        await stage.flood([kind], ACROSS)
        await stage.waitAndAsk(kind)
        await stage.flood([kind], SMALL)
      }
      await Promise.all([flooded(withToken(await stage.token())), flooded(RIGHT_PASSWORD)])
    },
  }
}
