import { apiRequest } from '../question.ts'
import type { Departure } from '../verdict.ts'
import { conclude, type Round, untested } from './round.ts'

/** The lifetime of an access token (device API §5.6), in seconds. */
const LIFETIME = 3600

/** C7 and C8, and what all responses of the run say of C9, C16 and C19. */
export const end: Round = {
  promises: ['C7', 'C8', 'C9', 'C16', 'C19'],
  cost: () => ({ requests: 1, seconds: 1 }),
  async run(stage) {
    const { firstLogin, options, records, clock } = stage
    const others = [
      ...untested(['C8'], 'the password of the device would have to change'),
      ...records.findings(),
    ]
    if (firstLogin === undefined) return [...untested(['C7'], 'no login gave tokens'), ...others]
    const departures: (Departure | undefined)[] = []
    const { accessToken, at, expiresIn } = firstLogin
    if (expiresIn !== LIFETIME && Number.isInteger(expiresIn)) {
      const sent = 'the login'
      departures.push({
        sent,
        came: `expires_in: ${expiresIn}`,
        wanted: String(LIFETIME),
        clause: 'device API §5.6',
      })
    }
    if (options.quick)
      return [...conclude('C7', departures, 'only expires_in was read, because of --quick'), ...others]
    const age = Math.round((clock.wall() - at) / 1000)
    const question = apiRequest(options.path, accessToken, `with the token of the first login, ${age} s old`)
    const answer = await stage.ask(question)
    if (answer.status !== stage.passStatus)
      departures.push(stage.departure(question, answer, 'the response of the API', 'device API §5.6'))
    const note = 'that tokens expire would take an hour and a week to see'
    return [...conclude('C7', departures, note), ...others]
  },
}
