import type { Figure } from '../figure.ts'
import { programCost } from './program-cost.ts'

export const admission: Figure = {
  id: 'P10',
  title: 'Cost of one admission',
  about:
    'Processor time of the gate with its real window table and token store, in a loop: classify, identify, limit, authorize, for a small request, one of a thousand tokens in turn.',
  async measure(lab) {
    const cost = await programCost(lab, 'admission-program.ts')
    return {
      checks: [
        {
          id: 'P10 admission',
          what: 'one admission',
          unit: 'µs',
          better: 'less',
          reach: 2,
          value: cost?.median,
          range: cost?.range,
          comparable: 'same machine',
        },
      ],
      charts: [],
      tables: [],
      notes: [],
      faults: [],
    }
  },
}
