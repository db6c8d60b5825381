// Cron jobs: defaults, that their schedule can be read, and that their template makes a job.
import { parseSchedule, timeZoneProblem } from '../../cron-schedule.ts';
import type { Findings } from '../../../core/validation/field-error.ts';
import { childRecord, numberAt, recordAt, textAt, type ApiObject } from '../objects.ts';
import type { Strategy } from '../strategy.ts';
import { checkJobTemplate, decodeTemplate, withDefaults } from './workload.ts';

const MAX_NAME = 52;

function check(f: Findings, object: ApiObject): void {
  const spec = recordAt(object, 'spec');
  const schedule = textAt(spec, 'schedule');
  if (schedule === '') f.required('spec.schedule');
  else if (schedule.includes('TZ'))
    f.invalid('spec.schedule', schedule, 'cannot use TZ or CRON_TZ in schedule, use timeZone field instead');
  else {
    const read = parseSchedule(schedule);
    if (typeof read === 'string') f.invalid('spec.schedule', schedule, read);
  }
  if (spec['timeZone'] !== undefined) {
    const zone = textAt(spec, 'timeZone');
    const problem = timeZoneProblem(zone);
    if (problem !== undefined) f.invalid('spec.timeZone', zone, problem);
  }
  f.oneOf('spec.concurrencyPolicy', textAt(spec, 'concurrencyPolicy'), ['Allow', 'Forbid', 'Replace']);
  for (const field of ['startingDeadlineSeconds', 'successfulJobsHistoryLimit', 'failedJobsHistoryLimit'])
    f.nonNegative(`spec.${field}`, numberAt(spec, field));
  checkJobTemplate(f, object);
}

export const cronJobStrategy: Strategy = {
  decode(draft) {
    const spec = childRecord(draft, 'spec');
    withDefaults(spec, {
      concurrencyPolicy: 'Allow',
      suspend: false,
      successfulJobsHistoryLimit: 3,
      failedJobsHistoryLimit: 1,
    });
    return decodeTemplate(draft, childRecord(childRecord(spec, 'jobTemplate'), 'spec'));
  },
  prepareCreate(draft) {
    draft['status'] = {};
  },
  validate(f, object) {
    // The names of its jobs are longer by what tells them apart.
    if (object.metadata.name.length > MAX_NAME)
      f.invalid('metadata.name', object.metadata.name, `must be no more than ${MAX_NAME} characters`);
    check(f, object);
  },
  validateUpdate(f, object, _old, _world, subresource) {
    if (subresource === '') check(f, object);
  },
};
