import { sharesPlaces } from '../../compose/device-service.ts'
import {
  besidePlaces,
  isCareful,
  isDefaultPlaces,
  placesBounds,
  type ServiceConfig,
} from '../../config/upstream-fields.ts'
import { counted } from '../columns.ts'
import { check } from './part.ts'
import { allServices } from './services.ts'

/** How many requests the device gets at once. Services at the same address with the same `max_in_flight` share their places. */
export const PLACES = check({
  subjects(asked) {
    const groups: (ReturnType<typeof allServices>[number] & { readonly all: ServiceConfig[] })[] = []
    for (const each of allServices(asked)) {
      const group = groups.find(({ service }) => sharesPlaces(service, each.service))
      if (group === undefined) groups.push({ ...each, all: [each.service] })
      else group.all.push(each.service)
    }
    return groups
  },
  about: ({ key, of }) => ({
    name: `places${of}`,
    key: `${key}.max_in_flight`,
    meaning: 'the device gets more requests at once than it takes',
    remedy: `set ${key}.max_in_flight to what it takes`,
  }),
  look: ({ service, all }) => ({
    bounds: placesBounds(service),
    service,
    beside: besideText(all, placesBounds(service).max),
  }),
  rows: {
    fixed: ({ bounds: { min, max }, beside }) => min === max && `always ${max}${beside}`,
    default: ({ bounds: { max }, service, beside }) =>
      isDefaultPlaces(service) && `up to ${max} requests at once, learned (the default)${beside}`,
    careful: ({ bounds: { min, max }, service, beside }) =>
      isCareful(service) && `${min} to ${max} requests at once, learned${beside}`,
    risky: ({ bounds: { max }, beside }) => `up to ${max}, learned: may break the device once${beside}`,
  },
})

/** What the services with these places have beside them, and the sum. */
function besideText(all: readonly ServiceConfig[], places: number): string {
  const { streams, tunnels } = besidePlaces(all)
  const sorts = [
    streams === 0 ? [] : counted(streams, 'stream'),
    tunnels === 0 ? [] : counted(tunnels, 'WebSocket'),
  ]
  const text = sorts.flat().join(' and ')
  return text === '' ? '' : `; with ${text} beside, up to ${places + streams + tunnels} at once`
}
