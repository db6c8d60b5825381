import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import {
  FIRST_PROJECT,
  freeProjects,
  MAX_PASSED_OVER,
  projectsIn,
  withoutProject,
  withProject,
  type ProjectFiles,
} from './project-files.ts';

const EMPTY: ProjectFiles = { projects: '', projid: '' };
const OTHERS: ProjectFiles = { projects: '# ours\n42:/srv/a:b\nnonsense', projid: '#x:7\nsrv:42\n' };
const first = (files: ProjectFiles): number | undefined => freeProjects(files).next().value ?? undefined;

describe('project files', () => {
  it('name the directories, whatever else is in them', () => {
    assert.deepEqual([...projectsIn(OTHERS.projects)], [['/srv/a:b', 42]]);
    assert.deepEqual(
      [...projectsIn('1:/a\n2:/a\n:/b\n-3:/c\n4:\n')],
      [
        ['/a', 1],
        ['', 4],
      ],
    );
  });

  const FREE: readonly (readonly [string, ProjectFiles, number])[] = [
    ['nothing is taken', EMPTY, FIRST_PROJECT],
    ['others have small ids', OTHERS, FIRST_PROJECT],
    ['by a directory', { projects: '1048577:/a\n', projid: '' }, 1_048_578],
    ['by a name without a directory', { projects: '1048577:/a\n', projid: 'x:1048578\n' }, 1_048_579],
    ['a gap is filled', { projects: '1048578:/a\n', projid: 'volume1048578:1048578\n' }, FIRST_PROJECT],
    ['a comment takes nothing', { projects: '#1048577:/a\n', projid: '#1048577:1048577\n' }, FIRST_PROJECT],
  ];
  for (const [name, files, wanted] of FREE) it(`free id: ${name}`, () => assert.equal(first(files), wanted));

  it('pass over a bounded number of ids', () => {
    assert.equal([...freeProjects(EMPTY)].length, MAX_PASSED_OVER);
  });

  it('get a directory, and lose it without a trace', () => {
    const one = withProject(OTHERS, '/v/1', 1_048_577);
    assert.deepEqual(one, {
      projects: '# ours\n42:/srv/a:b\nnonsense\n1048577:/v/1\n',
      projid: '#x:7\nsrv:42\nvolume1048577:1048577\n',
    });
    const two = withProject(one, '/v/2', 1_048_578);
    assert.deepEqual(withoutProject(two, '/v/2'), one);
    assert.deepEqual(withoutProject(one, '/v/1'), { ...OTHERS, projects: `${OTHERS.projects}\n` });
    assert.deepEqual(withoutProject(one, '/v/other'), one);
    assert.deepEqual(withoutProject(withProject(EMPTY, '/v', FIRST_PROJECT), '/v'), EMPTY);
  });

  it('keep the name of an id that another directory has', () => {
    const shared = { projects: '1048577:/a\n1048577:/b\n', projid: 'volume1048577:1048577\n' };
    assert.deepEqual(withoutProject(shared, '/a'), { ...shared, projects: '1048577:/b\n' });
  });
});
