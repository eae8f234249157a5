cd /work/warm; export PYTHONPATH=/work/warm
.venv/bin/python -m pytest -q -n 2 --dist loadfile tests/app > /work/log/warm2.log 2>&1; echo rc $? >> /work/log/warm2.log
