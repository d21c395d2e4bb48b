"""From samples of clusters to what they carry and will carry, on Spark: only here is pyspark imported.

done = restow.pipeline("samples", load="loads", report="report.html")
"""

from restow._stages import make_callable
from restow.pipeline.running import PipelineRun, pipeline

__all__ = ["PipelineRun", "pipeline"]

make_callable(__name__)
